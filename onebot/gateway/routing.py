"""The WebSocket addresses: one for all roles, and two for clients that open two sockets."""

from collections.abc import Sequence
from typing import Any

from channels.routing import URLRouter
from django.urls import URLPattern, re_path

from onebot.gateway.consumer import OneBotConsumer, refuse_websocket
from onebot.gateway.gateway import Gateway


def websocket_routes(gateway: Gateway, others: Sequence[URLPattern] = ()) -> URLRouter:
    """The clients' addresses, and ``others``; everything else is refused."""
    consumer = OneBotConsumer.as_asgi(gateway=gateway)
    return URLRouter(
        [
            asgi_route(r"^ws/frostagent(?:/(?:api|event))?/?$", consumer),
            *others,
            asgi_route(r"", refuse_websocket),
        ]
    )


def asgi_route(pattern: str, application: Any) -> URLPattern:
    """A route to an ASGI application, where Django expects a view."""
    found: URLPattern = re_path(pattern, application)
    return found
