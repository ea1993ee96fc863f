"""What downloads may reach although it is not public: the entries of ``FETCH_ALLOW``, and which
addresses belong to the public internet. Without Django: the settings are read with it.

The latter is written out instead of left to ``ipaddress.is_global``, whose answers differ between
the patch releases of Python 3.11, and which says yes to multicast. Source: the IANA registries of
special-purpose IPv4 and IPv6 addresses (RFC 6890 and its updates).
"""

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from yarl import URL

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FAKE_IP_NETWORK = ipaddress.IPv4Network("198.18.0.0/15")
"""For benchmarks by RFC 2544; what proxies such as Clash answer for every name in "fake-ip"
mode."""
_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers; Alibaba Cloud's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host, among public addresses
        "169.254.0.0/16",  # link-local; the metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocols; Oracle Cloud's metadata
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        FAKE_IP_NETWORK,
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved; broadcast
    )
)
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocols; Teredo, which carries an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def unwrap_address(address: Address) -> Address:
    """The IPv4 address that is reached through ``address`` where it only wraps one, else
    ``address``.

    IPv4-mapped addresses, and those of NAT64, through which hosts without IPv4 see the public
    internet.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address


def is_public(address: Address) -> bool:
    """Whether ``address`` is reached the same way from everywhere.

    Of IPv6, only what is handed out as global unicast; the tunnels that carry an IPv4
    address (6to4, Teredo) are out of use and count as not public, whatever they carry.
    """
    inner = unwrap_address(address)
    if isinstance(inner, ipaddress.IPv4Address):
        return not any(inner in network for network in _NOT_PUBLIC_4)
    return inner in _GLOBAL_6 and not any(inner in network for network in _NOT_PUBLIC_6)


def parse_address(host: str) -> Address | None:
    """The address that ``host`` is in its usual spelling, or None."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


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


Use = Literal["media", "model", "tools", "mcp", "alerts"]
"""What is loaded: what people send, addresses that the model writes, HTTP tools with their
documents, MCP servers; and where alerts are sent."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_NAME = re.compile(
    rf"(?!(?:.*\.)?(?:\d+|0x[0-9a-f]*)$){_LABEL}(?:\.{_LABEL})*"
)  # what ends in a number is an address
FORMS = (
    "wants a host name, *.NAME, an address or a network such as 10.0.0.0/8, without scheme and"
    " port;"
    " media:, model:, tools:, mcp: or alerts: before it permits it for that use alone"
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
