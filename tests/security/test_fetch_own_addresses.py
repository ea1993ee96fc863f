"""The machine's own addresses are not public, whatever range they are from."""

import shutil
import socket
import subprocess
import sys
from ipaddress import ip_address

import pytest

from tests.environment import PROJECT
from tools.fetch import allow_list
from tools.fetch.allow_list import AllowList, is_own_address

#: A usual VPS in a network of its own: a public address on an interface, with something that
#: listens there.
VPS = """
import asyncio, fcntl, http.server, socket, struct, threading
from tools.fetch.allow_list import AllowList
from tools.fetch.request import DestinationRefused
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchRequest

ADDRESS = "93.184.215.77"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    place = struct.pack("16sH2s4s8s", b"lo:1", socket.AF_INET, b"", socket.inet_aton(ADDRESS), b"")
    for name in (b"lo", b"lo:1"):
        if name == b"lo:1":
            fcntl.ioctl(control, 0x8916, place)  # SIOCSIFADDR
        flags = struct.pack("16sH14s", name, 0x41, b"")  # up, running
        fcntl.ioctl(control, 0x8914, flags)  # SIOCSIFFLAGS


class Inside(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"INSIDE")

    def log_message(self, *_):
        pass


server = http.server.HTTPServer((ADDRESS, 0), Inside)
threading.Thread(target=server.serve_forever, daemon=True).start()
mapped = "[::ffff:93.184.215.77]"


async def load(host, allow=()):
    fetcher = Fetcher(AllowList.parse(allow))
    try:
        url = f"http://{host}:{server.server_port}/"
        return (await fetcher.download(FetchRequest(url, max_bytes=99, seconds=9))).body
    except DestinationRefused as refused:
        return "refused: " + str(refused)
    finally:
        await fetcher.close()


for host in (ADDRESS, "1572394829", "0x5db8d74d", mapped):
    print(asyncio.run(load(host)))
print(asyncio.run(load(ADDRESS, ["93.184.215.77"])))
"""


def test_a_public_address_of_an_interface_is_refused_until_it_is_listed():
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no network of its own can be made here")
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", VPS],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    *refused, listed = done.stdout.splitlines() or [done.stderr]
    assert [line for line in refused if "is not public" not in line] == []
    assert (len(refused), listed) == (4, "b'INSIDE'")


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_an_address_of_an_interface_is_found(address):
    assert is_own_address(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::101:101"],
)
def test_an_address_elsewhere_is_none_of_ours(address):
    assert not is_own_address(ip_address(address))
    assert AllowList().permits("example.com", ip_address(address))


def test_an_own_address_is_found_where_the_system_lets_any_be_bound(monkeypatch):
    monkeypatch.setattr(allow_list, "_can_be_bound", lambda _address: True)
    assert is_own_address(ip_address("127.0.0.1"))
    monkeypatch.setattr(allow_list, "_is_sent_from_itself", lambda _address: False)
    assert not is_own_address(ip_address("93.184.216.34"))


def test_what_the_machine_is_called_is_judged_by_its_addresses(monkeypatch):
    monkeypatch.setattr(
        "tools.fetch.allow_list.is_own_address", lambda address: str(address) == "93.184.215.77"
    )
    assert not AllowList().permits(socket.gethostname(), ip_address("93.184.215.77"))
    assert AllowList.parse([socket.gethostname()]).permits(
        socket.gethostname(), ip_address("93.184.215.77")
    )
