"""From a host's name to the addresses that may be dialled for it."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address

from tools.fetch.addresses import FAKE_IP_NETWORK, Address, unwrap_address
from tools.fetch.allow_list import AllowList
from tools.fetch.errors import DestinationRefused, NameUnknown
from tools.processes.threads import run_in_thread

ResolveHost = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host, best first. Raises ``socket.gaierror`` when there are none."""


class DestinationResolver:
    """Judges hosts by what ``resolve`` says, under ``allow``."""

    def __init__(self, allow: AllowList | None = None, resolve: ResolveHost | None = None) -> None:
        self._allow = allow or AllowList()
        self._resolve = resolve or resolve_system_addresses

    async def permitted(self, host: str) -> tuple[Address, ...]:
        """The addresses of ``host`` that may be dialled, best first; at least one.

        Dial these and do not resolve ``host`` again. Raises :class:`NameUnknown`, and
        :class:`DestinationRefused` when no address is permitted. What is not permitted
        among others is left out: names with an address for inside and one for outside exist.
        """
        found = await self._addresses(host)
        permitted = tuple(address for address in found if self._allow.permits(host, address))
        if not permitted:
            raise DestinationRefused(_refusal(host, found))
        return permitted

    async def require_all(self, host: str) -> None:
        """Raise as :meth:`permitted`, and :class:`DestinationRefused` too where only some of the
        addresses are permitted.

        For what resolves ``host`` again elsewhere, and dials what it likes best.
        """
        found = await self._addresses(host)
        if not all(self._allow.permits(host, address) for address in found):
            raise DestinationRefused(_refusal(host, found))

    async def _addresses(self, host: str) -> tuple[Address, ...]:
        try:
            answers = await self._resolve(host)
        except (OSError, UnicodeError) as error:
            raise _unknown(host, error) from error
        if not answers:
            raise NameUnknown(f"{host} has no address")
        return tuple(dict.fromkeys(ip_address(answer) for answer in answers))


async def resolve_system_addresses(host: str) -> list[str]:
    """What this machine's resolver says, which also reads every spelling of an address.

    In a thread of its own: a name server that never answers would otherwise hold up the
    look-ups of everything else in this process.
    """
    look_up = partial(
        socket.getaddrinfo, host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return [str(info[4][0]) for info in await run_in_thread(look_up)]


def _unknown(host: str, error: OSError | UnicodeError) -> NameUnknown:
    refused = NameUnknown(f"{host} cannot be looked up: {error}")
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        refused.is_retryable, refused.text = True, "暂时无法查询该网址的域名，可以稍后再试。"
    return refused


def _refusal(host: str, found: Sequence[Address]) -> str:
    hint = (
        " (a proxy in fake-ip mode answers so for every name)"
        if any(unwrap_address(address) in FAKE_IP_NETWORK for address in found)
        else ""
    )
    addresses = ", ".join(map(str, found))
    return f"{host} is {addresses}, which is not public{hint}; FETCH_ALLOW can list it"
