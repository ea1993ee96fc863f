"""What ``doctor`` finds out by asking: the model's endpoint, and a running server from outside.

The server is asked as its users ask it: pages over HTTP, and a WebSocket handshake like
a OneBot client's. The handshake names no account, so that nothing of it is on record.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import requests
from django.conf import settings
from django.utils.translation import gettext as _

from agent.domain.errors import LLMError
from agent.llm.completion import parse_completion
from agent.llm.transport import split_endpoint
from frostproject.doctor.diagnosis import (
    Finding,
    FindingLevel,
    fail_finding,
    note_finding,
    ok_finding,
    warn_finding,
)

#: Time for a model's answer to a few words, in seconds, and for the server's own pages.
MODEL_SECONDS = 60.0
SERVER_SECONDS = 10.0
EXCERPT = 200
#: Above daphne's own limit of 1 MiB, and small enough for a slow line.
PROBE_FRAME_BYTES = 2 * 2**20
PROBE_QUESTION = "Reply with the word OK."
PROBE_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


# --- The model ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProbedEndpoint:
    """A model as the settings name it. ``prefix`` begins the names of its variables."""

    prefix: str
    url: str
    key: str = field(repr=False)
    model: str
    seconds: float = MODEL_SECONDS

    @property
    def model_variable(self) -> str:
        return "MODEL_NAME" if self.prefix == "UPSTREAM" else f"{self.prefix}_MODEL_NAME"

    def ask(self, *, with_tool: bool) -> requests.Response:
        base, query = split_endpoint(self.url)
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": PROBE_QUESTION}],
        }
        if with_tool:
            body["tools"] = [PROBE_TOOL]
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        limit = (min(self.seconds, SERVER_SECONDS), self.seconds)
        return requests.post(
            f"{base}/chat/completions", params=query, json=body, headers=headers, timeout=limit
        )


def probe_models() -> Iterator[Finding]:
    """The chat model, and the Coder where it is another one."""
    if not settings.UPSTREAM_ENDPOINT:
        yield note_finding(
            _("UPSTREAM_ENDPOINT is not set: the built-in demo model answers."),
            _("Set a model when you have seen it work."),
        )
        return
    seconds = min(settings.LLM_TIMEOUT, MODEL_SECONDS)
    yield probe_model(
        ProbedEndpoint(
            "UPSTREAM",
            settings.UPSTREAM_ENDPOINT,
            settings.UPSTREAM_API_KEY,
            settings.MODEL_NAME,
            seconds,
        )
    )
    coder = ProbedEndpoint(
        "CODER", settings.CODER_ENDPOINT, settings.CODER_API_KEY, settings.CODER_MODEL_NAME, seconds
    )
    if (coder.url, coder.model) != (settings.UPSTREAM_ENDPOINT, settings.MODEL_NAME):
        found = probe_model(coder)
        # Without the Coder everything else works.
        yield (
            warn_finding(_("Coder subagent: %s") % found.text, found.advice)
            if found.level is FindingLevel.FAIL
            else found
        )


def probe_model(endpoint: ProbedEndpoint) -> Finding:
    """A real chat completion, with a tool as the server offers it."""
    shown = f"{endpoint.model or '?'} @ {strip_url_secrets(endpoint.url)}"
    started = time.monotonic()
    try:
        response = endpoint.ask(with_tool=True)
        if response.status_code in (400, 404, 422, 500) and endpoint.ask(with_tool=False).ok:
            return fail_finding(
                _("The model %s answers, but not when tools are offered to it.") % shown,
                _("Choose a model that can call tools (function calling)."),
            )
        return _judged(endpoint, response, shown, time.monotonic() - started)
    except requests.RequestException as error:
        return _unreachable(endpoint, error, shown)


def _judged(
    endpoint: ProbedEndpoint, response: requests.Response, shown: str, seconds: float
) -> Finding:
    if not response.ok:
        said = _excerpt(response.text, endpoint.key)
        text = _("The endpoint of %(model)s answered %(status)d: %(said)s")
        return fail_finding(
            text % {"model": shown, "status": response.status_code, "said": said},
            _advice(endpoint, response.status_code),
        )
    try:
        parse_completion(response.json())
    except (requests.JSONDecodeError, LLMError):
        text = _("What %(model)s answers is not a chat completion: %(said)s")
        return fail_finding(
            text % {"model": shown, "said": _excerpt(response.text, endpoint.key)},
            _("Is %s_ENDPOINT the base address of an OpenAI-compatible API? Most end in /v1.")
            % endpoint.prefix,
        )
    return ok_finding(
        _("The model %(model)s answered within %(seconds).1f s.")
        % {"model": shown, "seconds": seconds}
    )


def _advice(endpoint: ProbedEndpoint, status: int) -> str:
    names = {"prefix": endpoint.prefix, "model": endpoint.model_variable}
    match status:
        case 401 | 403:
            return (
                _("The key is missing, wrong, or may not use this model: check %(prefix)s_API_KEY.")
                % names
            )
        case 404 | 405:
            return (
                _(
                    "Check %(prefix)s_ENDPOINT (most end in /v1) and whether %(model)s is offered "
                    "there."
                )
                % names
            )
        case 400 | 422:
            return _("Check whether %(model)s is offered by this endpoint.") % names
        case 402 | 429:
            return _(
                "The account is out of money or over its limit; see the page of your provider."
            )
        case _:
            return _("The endpoint itself has trouble; try again later, or ask its operator.")


def _unreachable(endpoint: ProbedEndpoint, error: requests.RequestException, shown: str) -> Finding:
    names = {"model": shown, "seconds": endpoint.seconds, "prefix": endpoint.prefix}
    if isinstance(error, requests.Timeout):
        text = _("The endpoint of %(model)s did not answer within %(seconds)g s.")
        return fail_finding(
            text % names,
            _("Is the address right, does it need a proxy, is the model still being loaded?"),
        )
    if isinstance(error, requests.exceptions.SSLError):
        text = _("The certificate of the endpoint of %(model)s is not trusted.")
        return fail_finding(
            text % names,
            _("Check the machine's clock and whether %(prefix)s_ENDPOINT is the right host.")
            % names,
        )
    text = _("The endpoint of %(model)s cannot be reached.")
    return fail_finding(
        text % names,
        _("Is %(prefix)s_ENDPOINT right, is the endpoint running, is there a network?") % names,
    )


def _excerpt(text: str, key: str) -> str:
    line = " ".join(text.split())[:EXCERPT]
    return line.replace(key, "***") if key else line


def strip_url_secrets(url: str) -> str:
    """``url`` without user, password and query, any of which may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


# --- The server -----------------------------------------------------------------


def probe_server(url: str, token: str) -> Iterator[Finding]:
    """A running server at ``url``; a stopped one is a note."""
    try:
        is_ours = _get(f"{url}/health").json().get("status") == "ok"
    except requests.exceptions.SSLError:
        yield fail_finding(
            _("The certificate of %s is not trusted.") % url,
            _("Renew it, or use the name it was made for."),
        )
        return
    except (requests.ConnectionError, requests.Timeout):
        yield note_finding(_("No server answers at %s.") % url, _("Start it with: make run"))
        return
    except (requests.RequestException, AttributeError):
        is_ours = False
    if not is_ours:
        yield fail_finding(
            _("Something else answers at %s.") % url,
            _("Choose another port in WS_LISTEN_ADDR, or mend the proxy."),
        )
        return
    yield ok_finding(_("The server at %s is running.") % url)
    try:
        yield from _pages(url)
        yield from asyncio.run(_collected(_websocket(url, token)))
    except requests.RequestException as error:
        yield fail_finding(
            _("The server at %(url)s stopped answering: %(error)s") % {"url": url, "error": error},
            _("See its log."),
        )


def _get(url: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False  # this machine is not asked for through a proxy
        return session.get(url, timeout=SERVER_SECONDS, allow_redirects=False)


def _pages(url: str) -> Iterator[Finding]:
    ready = _get(f"{url}/ready")
    if ready.ok:
        yield ok_finding(_("It has everything it needs to answer."))
    else:
        missing = (
            ", ".join(ready.json().get("missing", []))
            if ready.status_code == 503
            else str(ready.status_code)
        )
        yield fail_finding(
            _("It cannot answer messages; what is missing: %s") % missing, _("See its log.")
        )
    login = _get(f"{url}/admin/login/")
    if login.status_code == 400:
        host = urlsplit(url).hostname
        yield fail_finding(
            _("The admin does not know the host %s.") % host,
            _("Add it to DJANGO_ALLOWED_HOSTS and restart the server."),
        )
    elif login.status_code == 403:
        yield note_finding(
            _("The admin is not served to this machine's own address."),
            _("ADMIN_NETWORKS does not name 127.0.0.1; is that meant?"),
        )
    elif not login.ok:
        yield fail_finding(
            _("The admin answers %d.") % login.status_code, _("See the server's log.")
        )
    if url.startswith("https:") and url not in settings.CSRF_TRUSTED_ORIGINS:
        yield warn_finding(
            _("Nobody can log in to the admin through %s.") % url,
            _("Add it to CSRF_TRUSTED_ORIGINS and restart the server."),
        )


async def _collected(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [finding async for finding in findings]


async def _websocket(url: str, token: str) -> AsyncIterator[Finding]:
    """A client's handshake with the configured token, a large frame, and a handshake with a wrong
    token."""
    address = f"{url.replace('http', 'ws', 1)}/ws/frostagent"
    timeout = aiohttp.ClientTimeout(total=SERVER_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            async with session.ws_connect(
                address, headers=_bearer(token), autoping=False
            ) as socket:
                yield ok_finding(
                    _("A OneBot client with the configured token is let in.")
                    if token
                    else _("A OneBot client is let in.")
                )
                yield await _large_frame(socket)
        except aiohttp.WSServerHandshakeError as error:
            yield _refused(error.status, token)
            return
        except (aiohttp.ClientError, TimeoutError) as error:
            yield fail_finding(
                _("A OneBot client cannot connect: %s") % (error or type(error).__name__),
                _("See the server's log."),
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
        return ok_finding(_("Large frames (pictures) pass."))
    return fail_finding(
        _("A frame of 2 MiB closed the connection; so will every larger picture."),
        _(
            "Start the server with manage.py runserver or daphne frostproject.asgi:application, "
            "which raise the limit."
        ),
    )


def _refused(status: int, token: str) -> Finding:
    text = _("The server refuses OneBot clients (status %d).") % status
    if status in (400, 426):
        return fail_finding(
            text,
            _(
                "The proxy before it does not pass on WebSockets: set the Upgrade and Connection "
                "headers there."
            ),
        )
    if status != 403:
        return fail_finding(text, _("Does a proxy before it lead /ws/frostagent elsewhere?"))
    return fail_finding(
        text,
        _(
            "It was started with another ONEBOT_ACCESS_TOKEN or data folder, or a proxy drops the "
            "Authorization header."
        ),
    )


async def _wrong_token(session: aiohttp.ClientSession, address: str) -> Finding:
    try:
        async with session.ws_connect(address, headers=_bearer(secrets.token_hex())):
            pass
    except (aiohttp.ClientError, TimeoutError):
        return ok_finding(_("A wrong token is refused."))
    return fail_finding(
        _("The running server lets clients in with any token."),
        _("It was started without ONEBOT_ACCESS_TOKEN: restart it."),
    )
