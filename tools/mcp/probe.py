"""Trying a server out, for the admin: a session of its own, which ends with the trial."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings as project

from tools.contract import ToolSpec
from tools.error_boundary import capture_error
from tools.fetch.allow_list import AllowList
from tools.fetch.destinations import DestinationResolver
from tools.mcp.errors import McpClientError
from tools.mcp.listing import SessionCallbacks
from tools.mcp.session_opener import load_session_opener
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import OmittedTool, build_catalogue
from tools.text.untrusted import clean_line


@dataclass(slots=True)
class ProbeResult:
    """The result. ``error`` is "" when there was a session; ``about`` and ``tools`` then hold what
    the server offers."""

    seconds: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict)
    tools: list[ToolSpec] = field(default_factory=list)
    left_out: tuple[OmittedTool, ...] = ()
    error: str = ""


async def probe_mcp_server(settings: McpServerSettings) -> ProbeResult:
    """Connect to the server of ``settings``, list its tools and leave. Never raises; takes as long
    as connecting may, twice."""
    found = ProbeResult()
    began = time.monotonic()
    with capture_error() as attempt:
        if settings.problem:
            raise McpClientError(settings.problem)
        allow = AllowList.parse(project.FETCH_ALLOW, "mcp")
        connect = await load_session_opener(DestinationResolver(allow))
        # A probe ends before anything changes, so the callbacks do nothing.
        async with connect(
            settings, SessionCallbacks(lambda: None, lambda: None), False
        ) as session:
            found.about = session.about
            listing = await session.list_tools()
            catalogue = build_catalogue(settings, listing.tools)
            found.tools, found.left_out = list(catalogue.specs), catalogue.left_out
            found.error = listing.problem
    if attempt.error is not None:
        words = str(attempt.error)
        if not isinstance(attempt.error, McpClientError):
            words = f"{type(attempt.error).__name__}: {words}"
        found.error = clean_line(settings.masked(words), 1_000) or "?"
    found.seconds = round(time.monotonic() - began, 3)
    return found
