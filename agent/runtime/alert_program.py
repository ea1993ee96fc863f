"""Tell one alert by apprise: a program that lives for this. It reads an order from stdin, where no
other user of the machine sees it, and writes one word of
:class:`agent.domain.alerts.RouteOutcome`.

It dials no address that :mod:`tools.fetch` would not, whatever the library does: names are looked
up a second time here, and an address may name several hosts.
"""

import json
import socket
import sys
from typing import Any

import apprise

from tools.fetch.allow_list import AllowList, parse_address
from tools.processes.own_limits import limit_this_process

CPU_SECONDS, MEMORY_BYTES = 20, 2**30


class DialGuard:
    """Refuses to dial what is not permitted. Knows whether anything was dialled, and refused."""

    def __init__(self, allowed: AllowList) -> None:
        self._allowed = allowed
        self._permitted: set[str] = set()
        self.has_dialled = self.has_refused = False

    def stand_up(self) -> None:
        """From now on, for good."""
        look_up = socket.getaddrinfo

        def remember(host: Any, *arguments: Any, **options: Any) -> Any:
            found = look_up(host, *arguments, **options)
            for _family, _kind, _protocol, _name, address in found:
                self._judge(str(host), str(address[0]))
            return found

        socket.getaddrinfo = remember
        sys.addaudithook(self._watch)

    def _judge(self, host: str, text: str) -> bool:
        address = parse_address(text.partition("%")[0])
        if address is not None and self._allowed.permits(host, address):
            self._permitted.add(text)
        return text in self._permitted

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            return
        address = arguments[1]
        text = str(address[0]) if isinstance(address, tuple) else ""
        if event != "socket.connect" or not (text in self._permitted or self._judge(text, text)):
            self.has_refused = True
            raise PermissionError("this address is not permitted")
        self.has_dialled = True


def tell(order: dict[str, Any], guard: DialGuard) -> str:
    """The outcome of the one attempt."""
    asset = apprise.AppriseAsset(
        app_id="FrostAgent", app_desc="FrostAgent", app_url="", image_url_mask=""
    )
    asset.http_redirects = False
    target = apprise.Apprise.instantiate(order["url"], asset=asset)
    if target is None or not _schemes(target) & set(order["schemes"]):
        return "unreadable"
    target.redirects = False  # whatever its address says
    if target.notify(body=order["body"], title=order["title"]):
        return "told"
    if guard.has_refused and not guard.has_dialled:
        return "not_public"
    return "failed" if guard.has_dialled else "no_name"


def _schemes(target: Any) -> set[str]:
    named = (target.protocol, target.secure_protocol)
    listed = [(one,) if isinstance(one, str) else one or () for one in named]
    return {scheme for some in listed for scheme in some}


def main() -> None:
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    order = json.load(sys.stdin)
    guard = DialGuard(AllowList.parse(order["allowed"], "alerts"))
    guard.stand_up()
    sys.stdout.write(tell(order, guard))


if __name__ == "__main__":
    main()
