"""An address of the inside that is permitted for one use is out of reach for the others."""

import asyncio
import ipaddress

import pytest

from frostproject.configuration.env import Env, InvalidSetting
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.seeing import VISION, answered, image, text
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer
from tests.pictures import picture
from tests.scripted_model import call
from tests.security.test_fetch_urls import sent
from tools.fetch.allow_list import AllowList, Use
from tools.mcp.settings import check_server_row
from tools.models import McpServer

USES: tuple[Use, ...] = ("media", "model", "tools", "mcp")


@pytest.mark.parametrize("use", ["media", "model", "tools"])
async def test_each_use_reaches_what_it_was_permitted_and_no_other_does(
    start_server, model, file_server: FileServer, use: Use
):
    server = start_server(FETCH_ALLOW=f"{use}:127.0.0.1", VISUAL_MODEL_NAME=VISION)
    file_server.serve("/a.png", sends(picture("PNG")))
    url = f"{file_server.url}/a.png"
    async with client(server) as bot:
        model.script(["a red picture"] if use == "media" else [], model=VISION)
        model.script(["seen"])
        (*_, request) = await answered(bot, model, [text("what is it?"), image(url)])
        assert ("a red picture" in str(request.messages)) == (use == "media")
        actions = await sent(
            bot, model, call("send_message", messages=[{"type": "image", "url": url}])
        )
        assert bool(actions) == (use == "model")
    await asyncio.to_thread(read_document, server, f"{file_server.url}/api.json")
    assert ("/api.json" in [asked.target for asked in file_server.requests]) == (use == "tools")


def read_document(server: LiveServer, url: str) -> None:
    """Have HTTP tools made of the document at ``url``."""
    cockpit = Cockpit(server)
    cockpit._post("/admin/tools/httptool/import/", {"step": "read", "url": url}, status=200)
    cockpit.close()


@pytest.mark.parametrize("use", USES)
def test_an_entry_counts_for_its_use_alone(use):
    address = ipaddress.ip_address("10.0.0.5")
    for entry in (f"{use}:10.0.0.0/8", f"{use}: 10.0.0.5", f"{use}:nas.lan", f"{use}:*.lan"):
        assert [
            other for other in USES if AllowList.parse([entry], other).permits("nas.lan", address)
        ] == [use]
        assert not AllowList.parse([entry]).permits("nas.lan", address)


@pytest.mark.parametrize("use", USES)
def test_an_entry_without_a_use_counts_for_each(use):
    assert AllowList.parse(["10.0.0.5"], use).permits("nas.lan", ipaddress.ip_address("10.0.0.5"))
    assert AllowList.parse([f"{use}:fd00::/8"], use).permits(
        "nas.lan", ipaddress.ip_address("fd00::1")
    )


@pytest.mark.parametrize(
    "entry",
    [
        "tool:10.0.0.5",
        "all:nas.lan",
        "media:",
        "media:nas:80",
        "media:mcp:nas.lan",
        ":nas.lan",
        "MEDIA:nas.lan",
        "mcp://nas",
    ],
)
def test_a_use_that_is_none_stops_the_start(entry):
    with pytest.raises(
        InvalidSetting, match=r"^FETCH_ALLOW: .* media:, model:, tools:, mcp: or alerts:"
    ):
        Env({"FETCH_ALLOW": f"nas.lan,{entry}"}).destinations("FETCH_ALLOW")


@pytest.mark.parametrize(
    ("use", "is_saved"), [("media", False), ("model", False), ("tools", False), ("mcp", True)]
)
def test_an_mcp_server_is_where_it_is_permitted_for_mcp(settings, use, is_saved):
    settings.FETCH_ALLOW = [f"{use}:127.0.0.1"]
    row = McpServer(name="near", transport="http", url="http://127.0.0.1:9/mcp", enabled=True)
    assert (check_server_row(row) == []) == is_saved
