"""What ``doctor`` finds out by asking a running server from outside.

The server is asked as its users ask it: pages over HTTP, and a WebSocket handshake like
a OneBot client's. The handshake names no account, so that nothing of it is on record.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import aiohttp
import requests
from django.conf import settings
from django.utils.translation import gettext as _

from frostproject.doctor.diagnosis import (
    Finding,
    fail_finding,
    note_finding,
    ok_finding,
    warn_finding,
)
from onebot.connections.refusals import CHECK_AGENT

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
        headers = {**_bearer(secrets.token_hex()), "User-Agent": CHECK_AGENT}
        async with session.ws_connect(address, headers=headers):
            pass
    except (aiohttp.ClientError, TimeoutError):
        return ok_finding(_("A wrong token is refused."))
    return fail_finding(
        _("The running server lets clients in with any token."),
        _("It was started without ONEBOT_ACCESS_TOKEN: restart it."),
    )
