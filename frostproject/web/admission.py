"""Pages and programs' addresses for ``ADMIN_NETWORKS`` alone.

The address at the other end of the connection counts. Headers can be written by anybody,
so none opens anything.
"""

import html
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from frostproject.web import browser_policy, http
from onebot.connections.handshake import Handshake
from tools.error_boundary import LogLimit

logger = logging.getLogger(__name__)
limit = LogLimit(logger)

Application = Callable[[dict[str, Any], http.Receive, http.Send], Awaitable[None]]

REFUSAL_TEXT = (
    (
        "FrostAgent 只对 ADMIN_NETWORKS 里的网络开放这里。",
        "Only the networks in ADMIN_NETWORKS are served here.",
    ),
    ("服务器看到的你的地址是", "The server sees you at the address"),
    (
        "要开放：在服务器的 .env 里写下面这一行，然后重启（private 表示本机和内网，* "
        "表示所有地址）。",
        "To open it, put this line into .env on the server and restart it (private: this machine "
        "and private networks; *: all).",
    ),
)
REFUSAL_PAGE = """<!doctype html>
<html lang="zh"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>403</title></head>
<body><h1>403</h1>
<p>{0[0]}<br>{1[0]} <code>{peer}</code>。<br>{2[0]}</p>
<p lang="en">{0[1]}<br>{1[1]} <code>{peer}</code>.<br>{2[1]}</p>
<pre>ADMIN_NETWORKS=private,{peer}</pre></body></html>
"""


def restrict_to_admin_networks(application: Application, *, is_page: bool = False) -> Application:
    """``application`` for those networks; others get a 403 that says how to open it, as a page or
    as JSON."""

    async def served(scope: dict[str, Any], receive: http.Receive, send: http.Send) -> None:
        peer = Handshake.from_scope(scope).peer
        if peer in settings.ADMIN_NETWORKS:
            await application(scope, receive, send)
            return
        limit.warn(
            ("networks", peer),
            "Refused %s at %s: not in ADMIN_NETWORKS",
            str(scope.get("path", ""))[:100],
            peer,
        )
        if is_page:
            content = REFUSAL_PAGE.format(*REFUSAL_TEXT, peer=html.escape(peer)).encode()
            await http.send_http_response(
                send, 403, b"text/html; charset=utf-8", content, *browser_policy.POLICY_HEADERS
            )
        else:
            await http.send_json(send, 403, {"result": "", "error": _refusal(peer)})

    return served


def _refusal(peer: str) -> str:
    served, seen, open_it = REFUSAL_TEXT
    line = f"ADMIN_NETWORKS=private,{peer}"
    chinese = f"{served[0]}{seen[0]} {peer}。{open_it[0]} {line}"
    return f"{chinese} {served[1]} {seen[1]} {peer}. {open_it[1]} {line}"
