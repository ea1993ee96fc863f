"""The admin's trial of a server: a session of its own, which never raises and leaves nothing
behind."""

import sys

import pytest
from asgiref.sync import async_to_sync

from tests.tools.mcp.serving import SLOPPY, good, hostile
from tools.mcp.provider import ProbeResult, probe_mcp_server
from tools.mcp.settings import McpServerSettings

pytestmark = pytest.mark.live


def tried(settings: McpServerSettings) -> ProbeResult:
    return async_to_sync(probe_mcp_server)(settings)


def test_a_good_server_shows_itself_and_its_tools():
    found = tried(good(include=("say", "weather")))
    assert (found.error, found.about["name"]) == ("", "good")
    assert [tool.name for tool in found.tools] == ["weather", "say"]
    assert len(found.left_out) > 5
    assert found.seconds > 0


def test_a_tool_that_is_none_is_shown_with_the_reason():
    found = tried(hostile("sloppy-list", SLOPPY))
    assert (found.error, len(found.tools), len(found.left_out)) == ("", 7, 8)
    assert "is not what the protocol says" in found.left_out[0].reason


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (hostile("hang-connect", connect_seconds=0.2), "No answer within 0.2 s."),
        (hostile("wrong-list"), "not what the protocol says"),
        (hostile("down", "/nowhere"), "not yet"),
        (McpServerSettings(1, "x", command="rm"), "MCP_ALLOWED_COMMANDS"),
        (McpServerSettings(1, "x", command=sys.executable, environment={"PATH": "/tmp"}), "PATH"),
        (McpServerSettings(1, "x", transport="sse", url="http://10.0.0.1/"), "not public"),
        (McpServerSettings(1, "x", problem="Enter them anew."), "Enter them anew."),
    ],
)
def test_what_is_wrong_is_told(server: McpServerSettings, words: str):
    assert words in tried(server).error


def test_a_program_that_is_not_there_is_told_in_its_own_words(settings):
    settings.MCP_ALLOWED_COMMANDS = ["no-such-program"]
    error = tried(McpServerSettings(1, "x", command="no-such-program")).error
    assert "no-such-program: No such file or directory" in error
