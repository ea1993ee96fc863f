"""The HTTP addresses for programs: plain ASGI, past Django's middleware.

``/health`` has to answer while the database thread is busy or stuck, and Django's
middleware goes through that thread.
"""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from agent.domain.errors import AgentError, BudgetSpent, ClaimLost
from onebot.connections.handshake import (
    Handshake,
    is_trusted_loopback,
    origin_refusal,
    presented_tokens,
)
from onebot.gateway.gateway import Gateway
from tools.text.storable import make_storable
from tools.version import VERSION

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY = 4 * 2**20
BODY_SECONDS = 30.0

QUERY_ROLES = ("system", "user", "assistant")
MOST_MESSAGES = 1_000
#: Numbers in the body of a query, which needs none.
MOST_NUMBERS = 10_000


class HttpRefusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is answered with ``status`` and ``text``."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def serve_health(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """200 as soon as the process serves."""
    await send_json(send, 200, {"status": "ok", "version": VERSION})


class AgentQueryEndpoint:
    """``POST /agent/query``: a stateless run over HTTP."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._reading = asyncio.Lock()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        try:
            self._admit(scope)
            body = await read_body(receive)
            async with self._reading:  # in a thread, which holds up the others as little as it can
                messages = await asyncio.to_thread(parse_query, body)
            self._gateway.ensure_started()
            run_pk, text = await self._gateway.runtime.queries.answer(messages)
        except HttpRefusal as refusal:
            await send_json(send, refusal.status, {"result": "", "error": str(refusal)})
        except BudgetSpent:
            await send_json(
                send,
                429,
                {
                    "result": "",
                    "error": "too little is left of a budget for models; try again later",
                },
            )
        except (AgentError, ClaimLost):
            await send_json(
                send,
                502,
                {"result": "", "error": "the model could not be asked; the run's record says why"},
            )
        else:
            await send_json(send, 200, {"result": text, "run": run_pk})

    def _admit(self, scope: dict[str, Any]) -> None:
        if scope["method"] != "POST":
            raise HttpRefusal(405, "use POST")
        request = Handshake.from_scope(scope)
        refuse_unknown_host(request)
        if not self._needs_no_token(request):
            refuse_wrong_bearer(request, settings.HTTP_API_TOKEN)

    def _needs_no_token(self, request: Handshake) -> bool:
        """A program on this machine, where that is enough; a wrong token is refused even there, and
        so are foreign pages."""
        admission = self._gateway.admission
        trusted = admission.trust_loopback and is_trusted_loopback(request)
        return trusted and not presented_tokens(request) and not origin_refusal(request, admission)


def refuse_unknown_host(request: Handshake) -> None:
    """Raise :class:`HttpRefusal` (400) where a name that is not this installation's was made to
    point here."""
    if not validate_host(
        split_domain_port(request.headers.get("host", ""))[0], settings.ALLOWED_HOSTS
    ):
        raise HttpRefusal(400, "unknown host; list it in DJANGO_ALLOWED_HOSTS")


def refuse_wrong_bearer(request: Handshake, token: str) -> None:
    """Raise :class:`HttpRefusal` (401) unless the request bears ``token``."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    borne = given.strip().encode("latin1") if scheme.lower() == "bearer" else b""
    if not hmac.compare_digest(borne, token.encode()):
        raise HttpRefusal(401, "missing or wrong bearer token")


def parse_query(body: bytes) -> list[dict[str, Any]]:
    """The messages of a request body that are to be answered. Raises :class:`HttpRefusal` (400)."""
    try:
        query = _decode(body)
    except (ValueError, RecursionError) as error:
        raise HttpRefusal(400, "the body is not JSON") from error
    if not isinstance(query, dict):
        raise HttpRefusal(400, "the body is not a JSON object")
    given = query.get("messages")
    if given is not None and not isinstance(given, list):
        raise HttpRefusal(400, "messages is not a list")
    if given is not None and len(given) > MOST_MESSAGES:
        raise HttpRefusal(400, f"more than {MOST_MESSAGES} messages")
    messages = [_message(index, message) for index, message in enumerate(given or [])]
    text = query.get("input")
    if text is not None and not isinstance(text, str):
        raise HttpRefusal(400, "input is not a string")
    if text and text.strip():
        messages.append({"role": "user", "content": make_storable(text)})
    if not messages:
        raise HttpRefusal(400, "give input or messages")
    return messages


def _message(index: int, message: object) -> dict[str, Any]:
    if (
        not isinstance(message, dict)
        or message.get("role") not in QUERY_ROLES
        or not isinstance(message.get("content"), str)
    ):
        raise HttpRefusal(
            400, f"messages[{index}] wants a role of {', '.join(QUERY_ROLES)} and a content string"
        )
    return {"role": message["role"], "content": make_storable(message["content"])}


def _decode(body: bytes) -> Any:
    """The JSON of a query. Raises :class:`HttpRefusal` for one that is full of numbers."""
    left = MOST_NUMBERS

    def count(_digits: str) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise HttpRefusal(400, f"more than {MOST_NUMBERS} numbers")
        return 0

    return json.loads(body, parse_int=count, parse_float=count)


async def read_body(receive: Receive) -> bytes:
    """The whole body, at most ``MAX_BODY`` bytes and within ``BODY_SECONDS``."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpRefusal(400, "the request was broken off")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MAX_BODY:
                    raise HttpRefusal(413, f"the body is larger than {MAX_BODY} bytes")
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError as error:
        raise HttpRefusal(408, "the body did not arrive in time") from error


async def send_json(
    send: Send, status: int, body: dict[str, Any], *headers: tuple[bytes, bytes]
) -> None:
    content = json.dumps(body, ensure_ascii=False).encode()
    await send_http_response(send, status, b"application/json; charset=utf-8", content, *headers)


async def send_http_response(
    send: Send, status: int, kind: bytes, content: bytes, *headers: tuple[bytes, bytes]
) -> None:
    """A whole answer of the content type ``kind``."""
    usual = [
        (b"content-type", kind),
        (b"content-length", str(len(content)).encode()),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*usual, *headers]})
    await send({"type": "http.response.body", "body": content})


async def refuse_plain_request(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """A plain request on the WebSocket's address."""
    await send_json(
        send, 426, {"error": "this is a WebSocket address; point your OneBot client at it"}
    )
