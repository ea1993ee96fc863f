"""The WebSocket addresses: one for all roles, and two for clients that open two sockets."""

from channels.routing import URLRouter
from django.urls import re_path

from onebot.consumer import OneBotConsumer, refuse
from onebot.gateway import Gateway


def websocket_routes(gateway: Gateway) -> URLRouter:
    consumer = OneBotConsumer.as_asgi(gateway=gateway)
    return URLRouter([re_path(r"^ws/frostagent(?:/(?:api|event))?/?$", consumer), re_path(r"", refuse)])
