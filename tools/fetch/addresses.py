"""Which addresses belong to the public internet.

Written out instead of left to ``ipaddress.is_global``, whose answers differ between the
patch releases of Python 3.11, and which says yes to multicast. Source: the IANA registries
of special-purpose IPv4 and IPv6 addresses (RFC 6890 and its updates).
"""

import ipaddress

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
