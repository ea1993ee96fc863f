"""What downloads may reach although it is not public: the entries of ``FETCH_ALLOW``."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from yarl import URL

from tools.fetch.addresses import Address, Network, is_public, plain

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_NAME = re.compile(rf"(?!(?:.*\.)?(?:\d+|0x[0-9a-f]*)$){_LABEL}(?:\.{_LABEL})*")  # what ends in a number is an address
FORMS = "wants a host name, *.NAME, an address or a network such as 10.0.0.0/8, without scheme and port"


@dataclass(frozen=True, slots=True)
class AllowList:
    """Names (with whatever addresses they have) and networks. Without entries, only public addresses are permitted."""

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowList":
        """The list that ``entries`` describe. Raises ValueError for one that cannot be meant, with the forms that can.

        ``*.example.com`` stands for every name below ``example.com``, but not for itself.
        """
        networks, names = [], []
        for entry in entries:
            if network := _network(entry):
                networks.append(network)
            else:
                names.append(_name(entry))
        return cls(
            frozenset(name for name in names if not name.startswith("*")),
            tuple(name[1:] for name in names if name.startswith("*")),
            tuple(networks),
        )

    def permits(self, host: str, address: Address) -> bool:
        """Whether ``address``, found for ``host``, may be dialled."""
        return is_public(address) or self._names(canonical(host)) or self._holds(address)

    def _names(self, host: str) -> bool:
        return host in self.names or host.endswith(self.suffixes)

    def _holds(self, address: Address) -> bool:
        return any(one in network for network in self.networks for one in (address, plain(address)))


def canonical(host: str) -> str:
    """``host`` as it is compared: in lower case, without the dot that ends a full name."""
    return host.lower().removesuffix(".")


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _name(entry: str) -> str:
    star, bare = ("*.", entry[2:]) if entry.startswith("*.") else ("", entry)
    try:
        name = canonical(URL.build(scheme="http", host=bare).raw_host or "")
    except ValueError:
        name = ""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{entry!r} cannot be read; {FORMS}")
    return star + name
