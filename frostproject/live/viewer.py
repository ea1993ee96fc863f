"""Who is at a WebSocket of the admin: by the same session, and the same rule, as its pages."""

import io
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django_otp.middleware import OTPMiddleware

from frostproject.signin.session_store import SessionStore
from onebot.connections.handshake import Handshake


def origin_problem(scope: dict[str, Any]) -> str:
    """Why a handshake is refused before anybody is looked for; "" where it is not. Other sites'
    pages would bring the browser's cookie along, so the page has to be of this one."""
    handshake = Handshake.from_scope(scope)
    if handshake.peer not in settings.ADMIN_NETWORKS:
        return "not in ADMIN_NETWORKS"
    origin = handshake.headers.get("origin", "")
    try:
        is_own = urlsplit(origin).netloc.lower() == handshake.headers.get("host", "").lower() != ""
        _request(scope).get_host()
    except (ValueError, DisallowedHost):
        return "another host"
    return "" if is_own or origin in settings.CSRF_TRUSTED_ORIGINS else "another origin"


def find_viewer(scope: dict[str, Any]) -> Any:
    """The user whose session ``scope`` has the cookie of, if the admin lets them in; None
    otherwise. A fresh object, with fresh permissions, each time. Blocks."""
    request = _request(scope)
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    session: SessionBase = SessionStore(key)
    request.session = session
    request.user = get_user(request)
    OTPMiddleware(lambda _request: HttpResponse())(request)
    return request.user if admin.site.has_permission(request) else None


def _request(scope: dict[str, Any]) -> ASGIRequest:
    """The request of the handshake as Django would see it."""
    return ASGIRequest({**scope, "type": "http", "method": "GET"}, io.BytesIO())
