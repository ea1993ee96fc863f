"""Downloads over real HTTP: ordinary answers, refused destinations, redirects, and the end of
connections."""

import _socket
import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator

import pytest

from tests.environment import PATIENCE
from tests.file_server import (
    FileServer,
    ScriptedNames,
    never_answers,
    redirects,
    says_raw,
    sends,
    sends_endlessly,
)
from tests.tools.certificates import ServerTls
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.fetch.pinned_session import open_pinned_socket, pin_addresses
from tools.fetch.request import (
    ConnectionFailed,
    DestinationRefused,
    FetchRequest,
    NameUnknown,
    RedirectRefused,
    RequestRefused,
    StatusRefused,
    TlsRefused,
    TookTooLong,
    UnreadableAnswer,
)

HERE = AllowList.parse(["127.0.0.1"])


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    """One that may reach 127.0.0.1, and of this machine nothing else."""
    fetcher = Fetcher(HERE)
    yield fetcher
    await fetcher.close()


# --- Ordinary answers -----------------------------------------------------------


async def test_a_file_comes_with_its_claimed_type(fetcher, file_server: FileServer):
    url = file_server.serve("/a.png", sends(b"\x89PNG", "image/png; x=1"))
    fetched = await fetcher.download(FetchRequest(url + "?rkey=%7e~#top"))
    assert (fetched.body, fetched.content_type, fetched.status) == (
        b"\x89PNG",
        "image/png; x=1",
        200,
    )
    assert fetched.url == url + "?rkey=%7e~"
    assert file_server.requests[0].target == "/a.png?rkey=%7e~"


async def test_nothing_about_the_asker_is_sent(fetcher, file_server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    url = file_server.serve("/", sends(set_cookie="a=b"))
    await fetcher.fetch(FetchRequest(url))
    await fetcher.fetch(FetchRequest(url))
    assert set(file_server.requests[1].headers) == {
        "host",
        "accept",
        "accept-encoding",
        "user-agent",
        "connection",
    }


async def test_a_request_of_a_tool_is_sent_as_it_is(fetcher, file_server):
    url = file_server.serve("/api", sends(b"{}", "application/json", status=201))
    asked = FetchRequest(
        url, "POST", {"Content-Type": "application/json", "X-Api-Key": "k"}, b'{"a": 1}'
    )
    assert (await fetcher.fetch(asked)).status == 201
    request = file_server.requests[0]
    assert (request.method, request.body, request.headers["x-api-key"]) == (
        "POST",
        b'{"a": 1}',
        "k",
    )
    assert request.headers["content-type"] == "application/json"


async def test_a_head_request_has_no_body_whatever_length_it_claims(fetcher, file_server):
    url = file_server.serve("/", sends(content_length=str(2**40)))
    assert (await fetcher.fetch(FetchRequest(url, "HEAD"))).body == b""


@pytest.mark.parametrize(("status", "again"), [(404, False), (429, True), (503, True)])
async def test_a_download_of_something_else_is_refused_with_its_status(
    fetcher, file_server, status, again
):
    url = file_server.serve("/", sends(b"oops", status=status))
    assert (await fetcher.fetch(FetchRequest(url))).body == b"oops"
    with pytest.raises(StatusRefused, match=str(status)) as refused:
        await fetcher.download(FetchRequest(url))
    assert (refused.value.is_retryable, "稍后再试" in refused.value.text) == (again, again)


async def test_a_header_that_would_choose_another_destination_is_refused(fetcher, file_server):
    with pytest.raises(RequestRefused):
        await fetcher.fetch(FetchRequest(file_server.url, headers={"host": "inside"}))
    assert file_server.requests == []


# --- Destinations ---------------------------------------------------------------


async def by_the_c_library(host: str) -> list[str]:
    """What getaddrinfo makes of every spelling of an address; it looks nothing up."""
    return [
        str(info[4][0])
        for info in _socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    ]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ],
)
async def test_loopback_is_refused_however_it_is_spelt(host, file_server):
    fetcher = Fetcher(resolve=by_the_c_library)
    with pytest.raises(DestinationRefused, match="not public"):
        await fetcher.fetch(FetchRequest(file_server.url_for(host)))
    assert file_server.requests == []


async def test_a_name_of_this_machine_is_refused(file_server):
    with pytest.raises(DestinationRefused):
        await Fetcher().fetch(FetchRequest(file_server.url_for("localhost")))


async def test_a_listed_name_is_reached_and_keeps_its_name(file_server):
    fetcher = Fetcher(
        AllowList.parse(["files.test"]), resolve=ScriptedNames(files_test=[["127.0.0.1"]])
    )
    file_server.serve("/", sends(b"x"))
    assert (await fetcher.fetch(FetchRequest(file_server.url_for("files.test")))).body == b"x"
    assert file_server.requests[0].headers["host"] == f"files.test:{file_server.port}"
    await fetcher.close()


async def test_only_the_permitted_addresses_of_a_name_are_dialled(file_server):
    names = ScriptedNames(files_test=[["127.0.0.2", "127.0.0.1", "::1"]])
    fetcher = Fetcher(HERE, resolve=names)
    assert await fetcher.destinations.permitted("files.test") == (
        ipaddress.ip_address("127.0.0.1"),
    )
    file_server.serve("/", sends(b"x"))
    assert (await fetcher.fetch(FetchRequest(file_server.url_for("files.test")))).body == b"x"
    await fetcher.close()


async def test_a_name_that_rebinds_is_asked_once_and_then_refused(file_server):
    names = ScriptedNames(files_test=[["127.0.0.1"], ["127.0.0.2"]])
    fetcher, url = Fetcher(HERE, resolve=names), file_server.url_for("files.test")
    file_server.serve("/", sends(b"outside"))
    assert (await fetcher.fetch(FetchRequest(url))).body == b"outside"
    assert names.asked == ["files.test"]
    with pytest.raises(DestinationRefused):
        await fetcher.fetch(FetchRequest(url))
    assert len(file_server.requests) == 1
    await fetcher.close()


async def test_a_refusal_tells_the_model_no_address():
    fetcher = Fetcher(resolve=ScriptedNames(nas_lan=[["192.168.7.9"]], fake_test=[["198.18.0.4"]]))
    with pytest.raises(DestinationRefused, match=r"192\.168\.7\.9") as refused:
        await fetcher.fetch(FetchRequest("http://nas.lan/"))
    assert "192" not in refused.value.text
    with pytest.raises(DestinationRefused, match="fake-ip"):
        await fetcher.fetch(FetchRequest("http://fake.test/"))


@pytest.mark.parametrize(("code", "again"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)])
async def test_a_name_without_an_address_says_whether_to_try_again(code, again):
    async def resolve(_host):
        raise socket.gaierror(code, "no")

    with pytest.raises(NameUnknown) as refused:
        await Fetcher(resolve=resolve).fetch(FetchRequest("http://a.test/"))
    assert refused.value.is_retryable is again


def test_a_socket_to_an_address_that_was_not_judged_is_never_made():
    info = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80))
    with pytest.raises(PermissionError):
        open_pinned_socket(info)
    with pin_addresses([ipaddress.ip_address("127.0.0.2")]), pytest.raises(PermissionError):
        open_pinned_socket(info)


# --- Redirects ------------------------------------------------------------------


async def test_a_redirect_is_followed_and_told(fetcher, file_server):
    url = file_server.serve("/a", redirects("/b?x=%7e"))
    file_server.serve("/b", sends(b"x"))
    assert (await fetcher.fetch(FetchRequest(url))).url == f"{file_server.url}/b?x=%7e"


async def test_a_redirect_to_the_inside_is_refused(fetcher, file_server):
    with FileServer("127.0.0.2") as inside:
        url = file_server.serve("/a", redirects(inside.serve("/secret", sends(b"key"))))
        with pytest.raises(DestinationRefused):
            await fetcher.fetch(FetchRequest(url))
    assert inside.requests == []


async def test_a_redirect_to_a_name_that_rebinds_is_refused(file_server):
    names = ScriptedNames(files_test=[["127.0.0.1"], ["127.0.0.2"]])
    fetcher = Fetcher(HERE, resolve=names)
    file_server.serve("/a", redirects("/a"))
    with pytest.raises(DestinationRefused):
        await fetcher.fetch(FetchRequest(file_server.url_for("files.test") + "/a"))
    assert len(file_server.requests) == 1
    await fetcher.close()


async def test_a_loop_of_redirects_ends_after_five(fetcher, file_server):
    url = file_server.serve("/a", redirects("/a"))
    with pytest.raises(RedirectRefused, match="more than 5"):
        await fetcher.fetch(FetchRequest(url))
    assert len(file_server.requests) == 6


async def test_a_key_does_not_follow_to_another_origin(fetcher, file_server):
    with FileServer() as other:
        url = file_server.serve("/a", redirects(other.serve("/b", sends(b"x"))))
        await fetcher.fetch(FetchRequest(url, headers={"X-Api-Key": "k", "Accept": "text/plain"}))
    assert file_server.requests[0].headers["x-api-key"] == "k"
    assert "x-api-key" not in other.requests[0].headers
    assert other.requests[0].headers["accept"] == "text/plain"


async def test_the_body_of_a_redirect_is_not_read(fetcher, file_server):
    endless = says_raw(b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n", is_held=True)
    url = file_server.serve("/a", endless)
    file_server.serve("/b", sends(b"x"))
    assert (await fetcher.fetch(FetchRequest(url, seconds=5))).body == b"x"


@pytest.mark.parametrize("status", [300, 304])
async def test_what_is_no_redirect_is_an_answer(fetcher, file_server, status):
    url = file_server.serve("/", sends(status=status, location="/b"))
    assert (await fetcher.fetch(FetchRequest(url))).status == status


# --- TLS ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls() -> ServerTls:
    """A certificate for ``files.test``."""
    return ServerTls("files.test")


@pytest.mark.parametrize(("name", "is_trusted"), [("files.test", True), ("other.test", False)])
async def test_the_certificate_is_checked_against_the_name(tls, name, is_trusted):
    names = ScriptedNames(files_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    fetcher = Fetcher(HERE, resolve=names, tls=tls.client)
    with FileServer(tls=tls.server) as server:
        server.serve("/", sends(b"x"))
        if is_trusted:
            assert (await fetcher.fetch(FetchRequest(server.url_for(name)))).body == b"x"
        else:
            with pytest.raises(TlsRefused, match=name):
                await fetcher.fetch(FetchRequest(server.url_for(name)))
        await server.wait_until_unused()
    await fetcher.close()


async def test_a_certificate_nobody_vouches_for_is_refused(fetcher, tls):
    with FileServer(tls=tls.server) as server, pytest.raises(TlsRefused):
        await fetcher.fetch(FetchRequest(server.url))
    assert server.requests == []


# --- Ends -----------------------------------------------------------------------


@pytest.mark.parametrize("is_encrypted", [False, True])
async def test_a_cancelled_download_leaves_no_connection(tls, is_encrypted):
    fetcher = Fetcher(HERE, resolve=ScriptedNames(files_test=[["127.0.0.1"]]), tls=tls.client)
    with FileServer(tls=tls.server if is_encrypted else None) as server:
        for path, reply in {
            "/mute": never_answers(),
            "/endless": sends_endlessly(bytes(10)),
        }.items():
            server.serve(path, reply)
            task = asyncio.create_task(
                fetcher.fetch(FetchRequest(server.url_for("files.test") + path))
            )
            await server.wait_for_requests(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.wait_until_unused()
            server.requests.clear()
    await fetcher.close()


def mute_until_cut(listener: socket.socket, tls: ssl.SSLContext) -> None:
    """Shake hands, take a request, and wait for the end of the connection without saying goodbye.
    Raises when it does not come."""
    connection, _ = listener.accept()
    with connection.dup() as wire, tls.wrap_socket(connection, server_side=True) as encrypted:
        encrypted.recv(1)
        wire.settimeout(PATIENCE)
        while wire.recv(4096):
            pass


async def test_an_encrypted_connection_is_cut_when_the_server_does_not_say_goodbye(tls):
    fetcher = Fetcher(HERE, resolve=ScriptedNames(files_test=[["127.0.0.1"]]), tls=tls.client)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = asyncio.create_task(asyncio.to_thread(mute_until_cut, listener, tls.server))
        with pytest.raises(TookTooLong):
            await fetcher.fetch(
                FetchRequest(f"https://files.test:{listener.getsockname()[1]}/", seconds=1)
            )
        await server
    await fetcher.close()


async def test_a_server_that_never_answers_ends_with_the_time(fetcher, file_server):
    url = file_server.serve("/", never_answers())
    with pytest.raises(TookTooLong, match=r"127\.0\.0\.1 took more than 0\.2 s") as late:
        await fetcher.fetch(FetchRequest(url, seconds=0.2))
    assert late.value.text == "访问该网址超过 0.2 秒仍未完成，可以稍后再试。"
    await file_server.wait_until_unused()


async def test_a_look_up_that_never_ends_ends_with_the_time():
    async def resolve(_host):
        await asyncio.Event().wait()

    with pytest.raises(TookTooLong):
        await Fetcher(resolve=resolve).fetch(FetchRequest("http://a.test/", seconds=0.05))


async def test_a_closed_port_is_a_failed_connection(fetcher):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionFailed) as failed:
        await fetcher.fetch(FetchRequest(f"http://127.0.0.1:{port}/"))
    assert failed.value.is_retryable
    assert "127" not in failed.value.text


async def test_closing_ends_what_is_under_way_and_opens_anew_when_asked_again(fetcher, file_server):
    task = asyncio.create_task(fetcher.fetch(FetchRequest(file_server.serve("/", never_answers()))))
    await file_server.wait_for_requests(1)
    await fetcher.close()
    with pytest.raises(ConnectionFailed):
        await task
    await file_server.wait_until_unused()
    assert (await fetcher.fetch(FetchRequest(file_server.serve("/", sends(b"x"))))).body == b"x"


async def test_many_downloads_from_one_host_all_come(fetcher, file_server):
    urls = [file_server.serve(f"/{number}", sends(b"%d" % number)) for number in range(40)]
    fetched = await asyncio.gather(*(fetcher.fetch(FetchRequest(url)) for url in urls))
    assert [one.body for one in fetched] == [b"%d" % number for number in range(40)]
    await file_server.wait_until_unused()


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_what_is_not_an_http_answer_is_unreadable(fetcher, file_server, raw):
    url = file_server.serve("/", says_raw(raw))
    with pytest.raises(UnreadableAnswer):
        await fetcher.fetch(FetchRequest(url, seconds=5))
    await file_server.wait_until_unused()
