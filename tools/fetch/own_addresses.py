"""Which addresses are those of this machine, whatever range they are from."""

import ipaddress
import socket

from tools.fetch.addresses import Address, unwrap_address

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
