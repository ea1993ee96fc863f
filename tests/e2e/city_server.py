"""A server with tools from outside: more of them than are offered in full."""

import sys

from tests.live_server import LiveServer

_START = '''
import sys, django
django.setup()
from dataclasses import replace
from agent.runtime import wiring
from tools.contract import ToolFailed
from tools.functions.function_tool import tool
from tools.functions.function_tool import FunctionProvider

@tool
def plan_route(start: str, end: str) -> str:
    """规划从起点到终点的路线"""
    if start == end:
        raise ToolFailed("already there")
    return f"{start} -> {end}"

@tool
def city_map(city: str) -> str:
    """查看城市地图"""
    return f"map of {city}"

@tool
def air_quality(city: str) -> str:
    """查询空气质量指数"""
    return f"air of {city}"

CITY = FunctionProvider("city", "http", [plan_route, city_map, air_quality])
make, declared = wiring.build_tool_registry, wiring.declared_tools

def tool_registry(*parts):
    registry = make(*parts)
    registry.register_provider(CITY)
    return registry

wiring.build_tool_registry = tool_registry
wiring.declared_tools = lambda: declared() + [
    replace(one.spec, provider_name="city") for one in (plan_route, city_map, air_quality)
]
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
'''


class CityServer(LiveServer):
    """The real server, with three tools as rows of HTTP tools bring them."""

    def _command(self) -> list[str]:
        return [sys.executable, "-c", _START, "runserver", f"127.0.0.1:{self.port}", "--noreload"]
