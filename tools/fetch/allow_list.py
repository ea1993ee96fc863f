"""What downloads may reach although it is not public: the entries of ``FETCH_ALLOW``."""

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from yarl import URL

from tools.fetch.addresses import Address, Network, is_public, unwrap_address

# Which addresses are those of this machine, whatever range they are from.

#: Addresses of documents, which no machine has.
_NOBODYS = {4: ipaddress.ip_address("203.0.113.254"), 6: ipaddress.ip_address("2001:db8::fffe")}


def is_own_address(address: Address) -> bool:
    """Whether an interface of this machine has ``address`` at this moment. Asks the system; nothing
    is sent.

    Only its own addresses can be bound. Where the system lets any be bound (``ip_nonlocal_bind``),
    an own one is found by what would be sent to it: that would come from the same address.
    """
    inner = unwrap_address(address)
    return _can_be_bound(inner) and (
        not _can_be_bound(_NOBODYS[inner.version]) or _is_sent_from_itself(inner)
    )


def _can_be_bound(address: Address) -> bool:
    try:
        with _datagrams(address) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _is_sent_from_itself(address: Address) -> bool:
    try:
        with _datagrams(address) as probe:
            probe.connect((str(address), 9))
            return str(probe.getsockname()[0]) == str(address)
    except OSError:
        return False


def _datagrams(address: Address) -> socket.socket:
    return socket.socket(
        socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_DGRAM
    )


Use = Literal["media", "model", "tools", "mcp"]
"""What is loaded: what people send, addresses that the model writes, HTTP tools with their
documents, MCP servers."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_NAME = re.compile(
    rf"(?!(?:.*\.)?(?:\d+|0x[0-9a-f]*)$){_LABEL}(?:\.{_LABEL})*"
)  # what ends in a number is an address
FORMS = (
    "wants a host name, *.NAME, an address or a network such as 10.0.0.0/8, without scheme and"
    " port;"
    " media:, model:, tools: or mcp: before it permits it for that use alone"
)


@dataclass(frozen=True, slots=True)
class AllowList:
    """Names (with all addresses they resolve to) and networks. Without entries, only public
    addresses are permitted.

    The machine's own addresses count as not public: services on them are not meant for everyone who
    can send a URL.
    """

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str], use: Use | None = None) -> "AllowList":
        """What ``entries`` permit for ``use``. Raises ValueError for any that cannot be meant, with
        the forms that can.

        ``*.example.com`` stands for every name below ``example.com``, but not for itself.
        ``mcp:nas.lan`` counts for that use alone, an entry without a use for each.
        """
        networks, names = [], []
        for entry in entries:
            wanted, colon, rest = entry.partition(":")
            has_use = colon and wanted in get_args(Use)
            destination = _read_destination(entry, rest.strip() if has_use else entry)
            if has_use and wanted != use:
                continue
            if isinstance(destination, str):
                names.append(destination)
            else:
                networks.append(destination)
        return cls(
            frozenset(name for name in names if not name.startswith("*")),
            tuple(name[1:] for name in names if name.startswith("*")),
            tuple(networks),
        )

    def permits(self, host: str, address: Address) -> bool:
        """Whether ``address``, found for ``host``, may be dialled."""
        name = normalize_host(host)
        if name in self.names or name.endswith(self.suffixes):
            return True
        reached = (address, unwrap_address(address))
        if any(one in network for network in self.networks for one in reached):
            return True
        return is_public(address) and not is_own_address(address)


def normalize_host(host: str) -> str:
    """``host`` as it is compared: in lower case, without the dot that ends a full name."""
    return host.lower().removesuffix(".")


def _read_destination(entry: str, destination: str) -> Network | str:
    """The network, or the name, that an entry names. Raises ValueError."""
    try:
        return ipaddress.ip_network(destination.strip("[]"), strict=False)
    except ValueError:
        star, bare = ("*.", destination[2:]) if destination.startswith("*.") else ("", destination)
    try:
        name = normalize_host(URL.build(scheme="http", host=bare).raw_host or "")
    except ValueError:
        name = ""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{entry!r} cannot be read; {FORMS}")
    return star + name
