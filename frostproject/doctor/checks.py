"""All that is checked of an installation, in one list, for the command and for the admin's page.

Every model endpoint that may be asked, of rows and of the environment, is tried as the admin's
*Test* tries it (:mod:`agent.llm.probing.probe`).
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import requests
from django.conf import settings
from django.db import DatabaseError, connection
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.endpoint import Endpoint, ModelRole
from agent.domain.errors import LLMError
from agent.llm.client.model_list import fetch_models, find_alike
from agent.llm.endpoints.endpoint_pool import EndpointTable, endpoint_key, environment_table
from agent.llm.errors import error_words, refusals
from agent.llm.probing.probe import ProbeReport, describe_probe, probe_endpoint
from agent.record.settings.endpoints import load_endpoint_table
from agent.runtime.database import DatabaseRefused, check_migrations
from frostproject.doctor import diagnosis
from onebot.connections.handshake import CHECK_AGENT
from tools.fetch import allow_list, request
from tools.findings import (
    Finding,
    FindingLevel,
    fail_finding,
    note_finding,
    ok_finding,
    warn_finding,
)
from tools.mcp.settings import check_server_row
from tools.models import McpServer
from tools.version import USER_AGENT

#: For one question.
MODEL_SECONDS = 60.0
EXCERPT = 200
#: Which variable is to be looked at, where the environment names the endpoint.
_VARIABLES = {
    refusals.RefusalKind.WRONG_KEY: "API_KEY",
    refusals.RefusalKind.UNKNOWN_MODEL: "MODEL_NAME",
    refusals.RefusalKind.WRONG_ADDRESS: "ENDPOINT",
    refusals.RefusalKind.DOWN: "ENDPOINT",
    refusals.RefusalKind.OTHER: "MODEL_NAME",
    error_words.CERTIFICATE: "ENDPOINT",
    error_words.NO_CHAT: "ENDPOINT",
    error_words.WEB_PAGE: "ENDPOINT",
    error_words.TOO_SLOW: "ENDPOINT",
}


def check_models(seconds: float = MODEL_SECONDS) -> Iterator[Finding]:
    """Every endpoint that may be asked; that none of those for chats works is what is wrong."""
    table = load_table()
    endpoints = list_endpoints(table)
    chat = {endpoint_key(one) for one in table.resolve(ModelRole.CHAT)}
    for fault in table.faults.values():
        yield warn_finding(
            gettext("A model endpoint is left out: %s") % gettext(fault), gettext("See the admin.")
        )
    if not chat:
        yield note_finding(
            gettext("No model is set: the built-in demo model answers."),
            gettext("Set one in the admin under “Model endpoints”, or UPSTREAM_ENDPOINT in .env."),
            page=reverse("admin:agent_modelendpoint_add"),
        )
    reports = [asyncio.run(probe_endpoint(one, question_seconds=seconds)) for one in endpoints]
    is_answered = any(
        not report.fault for report in reports if endpoint_key(report.endpoint) in chat
    )
    for report in reports:
        is_needed = endpoint_key(report.endpoint) in chat and not is_answered
        for finding in judge_report(report):
            is_fail = finding.level is FindingLevel.FAIL
            is_minor = is_fail and not is_needed
            yield replace(finding, level=FindingLevel.WARN) if is_minor else finding
    if chat and not is_answered:
        yield fail_finding(
            gettext("No endpoint answers chats."),
            gettext("Mend one of them, or add another in the admin."),
        )


def load_table() -> EndpointTable:
    """The table of the rows; of the environment alone where there is no database, or an older
    one."""
    if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).exists():
        return environment_table()
    try:
        return load_endpoint_table()
    except DatabaseError:
        return environment_table()


def list_endpoints(table: EndpointTable) -> list[Endpoint]:
    """All that may be asked, each address and model once."""
    found: dict[tuple[str, str, frozenset[str]], Endpoint] = {}
    for one in (*table.rows.values(), *table.environment.values()):
        found.setdefault((one.url, one.model, one.abilities), one)
    return list(found.values())


def judge_report(report: ProbeReport) -> Iterator[Finding]:
    """The findings about one endpoint; none holds a key."""
    endpoint, shown = report.endpoint, name_endpoint(report.endpoint)
    if endpoint.environment == "CODER":
        shown = gettext("Coder subagent: %s") % shown
    page = reverse("admin:agent_modelendpoint_change", args=(endpoint.pk,)) if endpoint.pk else ""
    seconds = sum(call.seconds for call in report.calls)
    if report.works and report.calls:
        words = gettext("The model %(model)s answered within %(seconds).1f s.")
        yield ok_finding(words % {"model": shown, "seconds": seconds})
    for found in describe_probe(report):
        told = replace(found, text=f"{shown}: {found.text}", page=page)
        if found.level is FindingLevel.FAIL:
            said = " ".join(report.words.split())[:EXCERPT]
            yield replace(told, advice=_advice(report, found.advice), said=said)
        elif found.level is FindingLevel.WARN:
            yield told


def name_endpoint(endpoint: Endpoint) -> str:
    """The endpoint for people, without what may hold a key."""
    label = f"{endpoint.model or '?'} @ {strip_url_secrets(endpoint.url)}"
    return f"{endpoint.name} ({label})" if endpoint.name and not endpoint.environment else label


def _advice(report: ProbeReport, advice: str) -> str:
    """``advice`` with the variable to look at, or the names that may be meant."""
    parts = [advice]
    variable = _VARIABLES.get(report.fault)
    if variable and report.endpoint.environment:
        prefix = report.endpoint.environment
        shared = ("API_KEY", "ENDPOINT") if prefix not in ("UPSTREAM", "CODER") else ()
        name = f"UPSTREAM_{variable}" if variable in shared else f"{prefix}_{variable}"
        name = "MODEL_NAME" if name == "UPSTREAM_MODEL_NAME" else name
        parts.append(gettext("In .env it is %s.") % name)
    if report.fault == refusals.RefusalKind.UNKNOWN_MODEL and (alike := _alike(report.endpoint)):
        parts.append(gettext("There are: %s") % ", ".join(alike))
    return " ".join(parts)


def _alike(endpoint: Endpoint) -> Sequence[str]:
    try:
        return find_alike(endpoint.model, asyncio.run(fetch_models(endpoint)))
    except LLMError:
        return ()


def strip_url_secrets(url: str) -> str:
    """``url`` without user, password and query, any of which may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


# What ``doctor`` finds out by asking a running server from outside.
#
# The server is asked as its users ask it: pages over HTTP, and a WebSocket handshake like a OneBot
# client's. The handshake names no account, so that nothing of it is on record.

#: Time for the server's own pages, in seconds.
SERVER_SECONDS = 10.0
#: Above daphne's own limit of 1 MiB, and small enough for a slow line.
PROBE_FRAME_BYTES = 2 * 2**20


# --- The server -----------------------------------------------------------------


def probe_server(url: str, token: str) -> Iterator[Finding]:
    """A running server at ``url``; a stopped one is a note."""
    try:
        is_ours = _get(f"{url}/health").json().get("status") == "ok"
    except requests.exceptions.SSLError:
        yield fail_finding(
            gettext("The certificate of %s is not trusted.") % url,
            gettext("Renew it, or use the name it was made for."),
        )
        return
    except (requests.ConnectionError, requests.Timeout):
        yield note_finding(
            gettext("No server answers at %s.") % url, gettext("Start it with: make run")
        )
        return
    except (requests.RequestException, AttributeError):
        is_ours = False
    if not is_ours:
        yield fail_finding(
            gettext("Something else answers at %s.") % url,
            gettext("Choose another port in WS_LISTEN_ADDR, or mend the proxy."),
        )
        return
    yield ok_finding(gettext("The server at %s is running.") % url)
    try:
        yield from _pages(url)
        yield from asyncio.run(_collected(_websocket(url, token)))
    except requests.RequestException as error:
        yield fail_finding(
            gettext("The server at %(url)s stopped answering: %(error)s")
            % {"url": url, "error": error},
            gettext("See its log."),
        )


def _get(url: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False  # this machine is not asked for through a proxy
        session.headers["User-Agent"] = USER_AGENT
        return session.get(url, timeout=SERVER_SECONDS, allow_redirects=False)


def _pages(url: str) -> Iterator[Finding]:
    ready = _get(f"{url}/ready")
    if ready.ok:
        yield ok_finding(gettext("It has everything it needs to answer."))
    else:
        missing = (
            ", ".join(ready.json().get("missing", []))
            if ready.status_code == 503
            else str(ready.status_code)
        )
        yield fail_finding(
            gettext("It cannot answer messages; what is missing: %s") % missing,
            gettext("See its log."),
        )
    login = _get(f"{url}/admin/login/")
    if login.status_code == 400:
        yield fail_finding(
            gettext("The admin does not know the host %s.") % urlsplit(url).hostname,
            gettext("Add it to DJANGO_ALLOWED_HOSTS and restart the server."),
        )
    elif login.status_code == 403:
        yield note_finding(
            gettext("The admin is not served to this machine's own address."),
            gettext("ADMIN_NETWORKS does not name 127.0.0.1; is that meant?"),
        )
    elif not login.ok:
        yield fail_finding(
            gettext("The admin answers %d.") % login.status_code, gettext("See the server's log.")
        )
    if url.startswith("https:") and url not in settings.CSRF_TRUSTED_ORIGINS:
        yield warn_finding(
            gettext("Nobody can log in to the admin through %s.") % url,
            gettext("Add it to CSRF_TRUSTED_ORIGINS and restart the server."),
        )


async def _collected(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [finding async for finding in findings]


async def _websocket(url: str, token: str) -> AsyncIterator[Finding]:
    """A client's handshake with the configured token, a large frame, and a handshake with a wrong
    token."""
    address = f"{url.replace('http', 'ws', 1)}/ws/frostagent"
    timeout = aiohttp.ClientTimeout(total=SERVER_SECONDS)
    async with aiohttp.ClientSession(
        timeout=timeout, headers={"User-Agent": USER_AGENT}
    ) as session:
        try:
            async with session.ws_connect(
                address, headers=_bearer(token), autoping=False
            ) as socket:
                yield ok_finding(
                    gettext("A OneBot client with the configured token is let in.")
                    if token
                    else gettext("A OneBot client is let in.")
                )
                yield await _large_frame(socket)
        except aiohttp.WSServerHandshakeError as error:
            yield _refused(error.status, token)
            return
        except (aiohttp.ClientError, TimeoutError) as error:
            yield fail_finding(
                gettext("A OneBot client cannot connect: %s") % (error or type(error).__name__),
                gettext("See the server's log."),
            )
            return
        if token:
            yield await _wrong_token(session, address)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


async def _large_frame(socket: aiohttp.ClientWebSocketResponse) -> Finding:
    """Whether the server still answers a ping that was sent after a large frame."""
    # A response without an echo of ours: read, and thrown away.
    frame = {"status": "ok", "retcode": 0, "data": "x" * PROBE_FRAME_BYTES, "echo": None}
    try:
        await socket.send_str(json.dumps(frame))
        await socket.ping()
        answer = await socket.receive(SERVER_SECONDS)
        passed = answer.type == aiohttp.WSMsgType.PONG
    except (aiohttp.ClientError, OSError, TimeoutError):
        passed = False
    if passed:
        return ok_finding(gettext("Large frames (pictures) pass."))
    return fail_finding(
        gettext("A frame of 2 MiB closed the connection; so will every larger picture."),
        gettext(
            "Start the server with manage.py runserver or daphne frostproject.asgi:application, "
            "which raise the limit."
        ),
    )


def _refused(status: int, token: str) -> Finding:
    text = gettext("The server refuses OneBot clients (status %d).") % status
    if status in (400, 426):
        return fail_finding(
            text,
            gettext(
                "The proxy before it does not pass on WebSockets: set the Upgrade and Connection "
                "headers there."
            ),
        )
    if status != 403:
        return fail_finding(text, gettext("Does a proxy before it lead /ws/frostagent elsewhere?"))
    return fail_finding(
        text,
        gettext(
            "It was started with another ONEBOT_ACCESS_TOKEN or data folder, or a proxy drops the "
            "Authorization header."
        ),
    )


async def _wrong_token(session: aiohttp.ClientSession, address: str) -> Finding:
    try:
        headers = {**_bearer(secrets.token_hex()), "User-Agent": CHECK_AGENT}
        async with session.ws_connect(address, headers=headers):
            pass
    except (aiohttp.ClientError, TimeoutError):
        return ok_finding(gettext("A wrong token is refused."))
    return fail_finding(
        gettext("The running server lets clients in with any token."),
        gettext("It was started without ONEBOT_ACCESS_TOKEN: restart it."),
    )


# What ``doctor`` finds out about MCP servers: those that are switched on and cannot work. None is
# started or connected to.

#: The most servers that are checked.
MAX_SERVER_FINDINGS = 200


def check_mcp_servers() -> Iterator[Finding]:
    """A finding for each hindrance, or one for all servers together; nothing where there is no
    server, or no database to ask."""
    servers = _enabled()
    found = [finding for server in servers for finding in _hindrances(server)]
    yield from found
    if servers and not found:
        yield ok_finding(
            gettext("The MCP servers that are switched on can be used as they are set up: %d")
            % len(servers)
        )


def _enabled() -> list[McpServer]:
    if connection.vendor == "sqlite" and not _is_there(connection.settings_dict["NAME"]):
        return []
    try:
        return (
            list(McpServer.objects.filter(enabled=True).order_by("pk")[:MAX_SERVER_FINDINGS])
            if check_migrations()
            else []
        )
    except (DatabaseError, DatabaseRefused):  # the check of the database has said so
        return []


def _is_there(database: object) -> bool:
    """Whether there is such a file; looking into a database that is none would make one."""
    return "mode=memory" in str(database) or Path(str(database)).exists()


def _hindrances(server: McpServer) -> Iterator[Finding]:
    lines = check_server_row(server)
    if (
        not lines
        and server.transport != McpServer.Transport.STDIO
        and (refusal := _refusal(server.url))
    ):
        lines = [refusal]
    for line in lines:
        text = gettext("The MCP server %(name)s cannot be used: %(reason)s") % {
            "name": server.name,
            "reason": line,
        }
        page = reverse("admin:tools_mcpserver_change", args=(server.pk,))
        yield warn_finding(
            text, gettext("Mend it on its page in the admin, or switch it off there."), page
        )


def _refusal(url: str) -> str:
    """Why the host of ``url`` may not be reached, by what its name stands for at present; "" where
    it may."""
    destinations = request.DestinationResolver(
        allow_list.AllowList.parse(settings.FETCH_ALLOW, "mcp")
    )
    host = urlsplit(url).hostname or ""
    try:
        asyncio.run(destinations.permitted(host))
    except request.DestinationRefused:
        return gettext("%s has no public address, and FETCH_ALLOW in .env does not list it.") % host
    except request.NameUnknown:
        return gettext("Nobody knows the host %s at present.") % host
    return ""


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


CHECKS: tuple[Check, ...] = (
    Check("installation", _("This machine"), lambda _url: diagnosis.check_installation()),
    Check("exposure", _("Who can get in"), lambda _url: diagnosis.check_exposure()),
    Check("mcp", _("MCP servers"), lambda _url: check_mcp_servers(), True, 60.0),
    Check("models", _("Models"), lambda _url: check_models(), True, 300.0),
    Check(
        "server",
        _("The running server"),
        lambda url: probe_server(url, settings.ONEBOT_ACCESS_TOKEN),
        True,
        60.0,
    ),
)


def own_url(known_port: int = 0) -> str:
    """Where the server of these settings would be, from this machine; ``known_port`` is where it
    listens, 0: as the settings say."""
    host, port = settings.WS_LISTEN_ADDR
    port = known_port or port
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
