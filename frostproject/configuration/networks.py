"""Which networks an address is in. Pure."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The word for every address, and the one for :data:`PRIVATE_NETWORKS`.
EVERYWHERE, PRIVATE_WORD = "*", "private"
#: This machine and the networks that cannot be reached from the internet. 100.64.0.0/10 is not
#: among them: other customers of the same provider are in it.
PRIVATE_NETWORKS: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)


@dataclass(frozen=True, slots=True)
class Networks:
    """A list of networks; ``is_everywhere`` where it names them all."""

    networks: tuple[IPNetwork, ...] = PRIVATE_NETWORKS
    is_everywhere: bool = False

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "Networks":
        """Networks and addresses, ``private`` and ``*``. Raises ValueError, which names the entry
        that is none of them."""
        found: list[IPNetwork] = []
        everywhere = False
        for entry in entries:
            if entry == EVERYWHERE:
                everywhere = True
            elif entry.lower() == PRIVATE_WORD:
                found.extend(PRIVATE_NETWORKS)
            else:
                found.append(_network(entry))
        return cls(tuple(found), everywhere)

    def __str__(self) -> str:
        return EVERYWHERE if self.is_everywhere else ", ".join(map(str, self.networks))

    def __contains__(self, peer: str) -> bool:
        """Whether the address of a connection's other end is in one of them; "", a local socket,
        counts as this machine."""
        if self.is_everywhere:
            return True
        address = parse_ip_address(peer or "127.0.0.1")
        return address is not None and any(address in network for network in self.networks)

    @property
    def public(self) -> list[str]:
        """What of them is not private, as it is written."""
        outside = [
            one
            for one in self.networks
            if not any(
                one.version == private.version and one.subnet_of(private)  # type: ignore[arg-type]
                for private in PRIVATE_NETWORKS
            )
        ]
        return [EVERYWHERE] if self.is_everywhere else [str(one) for one in outside]


def parse_ip_address(peer: str) -> IPAddress | None:
    """The address that ``peer`` is, IPv4 where it is IPv4 in IPv6's clothes; None for what is
    none."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _network(entry: str) -> IPNetwork:
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        raise ValueError(
            f"{entry!r} is no network, no address, not {PRIVATE_WORD!r} and not '*'"
        ) from None
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is None or network.prefixlen < 96:
        return network
    return ipaddress.ip_network((mapped, network.prefixlen - 96), strict=False)
