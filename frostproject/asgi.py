"""The ASGI application: HTTP to Django, WebSockets to the OneBot consumer, and to pages that follow
what happens.

Started by ``runserver`` or by ``daphne frostproject.asgi:application``; importing this
module makes either of them a server that accepts large frames and drains on SIGTERM.
"""

import gc
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "frostproject.settings")

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from daphne.cli import CommandLineInterface
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from frostproject.configuration import listening

if listening.is_served_by_daphne():
    gc.disable()  # as in manage.py
    os.umask(0o077)
    listening.exit_if_taken(
        listening.daphne_address(sys.argv[1:])
    )  # before the settings make anything

django.setup(set_prefix=False)

from frostproject.live.feed import LiveFeed  # noqa: E402
from frostproject.metrics.endpoint import MetricsEndpoint  # noqa: E402
from frostproject.metrics.traces import TraceExport  # noqa: E402
from frostproject.server.daphne_server import DrainingServer  # noqa: E402
from frostproject.signin.pages import Pages  # noqa: E402
from frostproject.start import bootstrap  # noqa: E402
from frostproject.web import http  # noqa: E402
from frostproject.web.admission import restrict_to_admin_networks  # noqa: E402
from frostproject.web.mcp import McpEndpoint  # noqa: E402
from frostproject.web.readiness import ReadinessEndpoint  # noqa: E402
from onebot.gateway.consumer import asgi_route, websocket_routes  # noqa: E402
from onebot.gateway.gateway import Gateway  # noqa: E402
from onebot.playground.door import SignedDoor  # noqa: E402
from tools.tracing import name_runs_in_log  # noqa: E402

gateway = Gateway(
    SignedDoor(), lambda: import_string("frostproject.cockpit.told_alerts.find_told")()
)
mcp = McpEndpoint(gateway) if settings.MCP_SERVER_TOKEN else None
metrics = MetricsEndpoint(gateway) if settings.METRICS_TOKEN else None
DrainingServer.gateway, DrainingServer.mcp = gateway, mcp
DrainingServer.traces = TraceExport()
name_runs_in_log()
CommandLineInterface.server_class = DrainingServer

application = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                asgi_route(r"^health$", http.serve_health),
                asgi_route(r"^ready$", ReadinessEndpoint(gateway)),
                asgi_route(
                    r"^agent/query$", restrict_to_admin_networks(http.AgentQueryEndpoint(gateway))
                ),
                *([asgi_route(r"^mcp/?$", restrict_to_admin_networks(mcp))] if mcp else []),
                *(
                    [asgi_route(r"^metrics$", restrict_to_admin_networks(metrics))]
                    if metrics
                    else []
                ),
                asgi_route(r"^ws/frostagent(?:/|$)", http.refuse_plain_request),
                asgi_route(r"", restrict_to_admin_networks(Pages(), is_page=True)),
            ]
        ),
        "websocket": websocket_routes(
            gateway, [asgi_route(r"^ws/admin/live$", LiveFeed(gateway.runtime.record))]
        ),
    }
)

if listening.is_served_by_daphne():
    try:
        bootstrap.prepare_installation()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    bootstrap.print_greeting(listening.daphne_address(sys.argv[1:]))
