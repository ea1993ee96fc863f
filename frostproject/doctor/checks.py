"""All that is checked of an installation, in one list, for the command and for the admin's page."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from frostproject.doctor import diagnosis, exposure, mcp_check, model_check, probes
from frostproject.doctor.diagnosis import Finding


@dataclass(frozen=True, slots=True)
class Check:
    """Findings of one kind. ``find`` is called with the address of the server, which only some
    need. ``asks_others``: it asks models, name servers or the server over the network, and may take
    up to ``seconds``."""

    name: str
    title: str | Promise
    find: Callable[[str], Iterator[Finding]]
    asks_others: bool = False
    seconds: float = 20.0


def _probe_server(url: str) -> Iterator[Finding]:
    return probes.probe_server(url, settings.ONEBOT_ACCESS_TOKEN)


CHECKS: tuple[Check, ...] = (
    Check("installation", _("This machine"), lambda _url: diagnosis.check_installation()),
    Check("exposure", _("Who can get in"), lambda _url: exposure.check_exposure()),
    Check("mcp", _("MCP servers"), lambda _url: mcp_check.check_mcp_servers(), True, 60.0),
    Check("models", _("Models"), lambda _url: model_check.check_models(), True, 300.0),
    Check("server", _("The running server"), _probe_server, True, 60.0),
)


def own_url(known_port: int = 0) -> str:
    """Where the server of these settings would be, from this machine; ``known_port`` is where it
    listens, 0: as the settings say."""
    host, port = settings.WS_LISTEN_ADDR
    port = known_port or port
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
