"""The ASGI application: HTTP to Django, WebSockets to the OneBot consumer.

Started by ``runserver`` or by ``daphne frostproject.asgi:application``; importing this
module makes either of them a server that accepts large frames and drains on SIGTERM.
"""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "frostproject.settings")

from channels.routing import ProtocolTypeRouter, URLRouter
from daphne.cli import CommandLineInterface
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured

from frostproject import listening

if listening.is_served_by_daphne():
    os.umask(0o077)  # as in manage.py
    listening.refuse_taken(listening.wanted_by_daphne(sys.argv[1:]))  # before the settings make anything

pages = get_asgi_application()

from frostproject import bootstrap, greeting, http  # noqa: E402
from frostproject.admission import for_admin_networks  # noqa: E402
from frostproject.mcp import McpAddress  # noqa: E402
from frostproject.readiness import Ready  # noqa: E402
from frostproject.server import DrainingServer  # noqa: E402
from frostproject.signin.gate import Gate  # noqa: E402
from onebot.gateway import Gateway  # noqa: E402
from onebot.routing import route, websocket_routes  # noqa: E402

gateway = Gateway()
mcp = McpAddress(gateway) if settings.MCP_SERVER_TOKEN else None
DrainingServer.gateway, DrainingServer.mcp = gateway, mcp
CommandLineInterface.server_class = DrainingServer

application = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                route(r"^health$", http.health),
                route(r"^ready$", Ready(gateway)),
                route(r"^agent/query$", for_admin_networks(http.AgentQuery(gateway))),
                *([route(r"^mcp/?$", for_admin_networks(mcp))] if mcp else []),
                route(r"^ws/frostagent(?:/|$)", http.upgrade_required),
                route(r"", for_admin_networks(Gate(pages), is_page=True)),
            ]
        ),
        "websocket": websocket_routes(gateway),
    }
)

if listening.is_served_by_daphne():
    try:
        bootstrap.prepare()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    greeting.greet(listening.wanted_by_daphne(sys.argv[1:]))
