"""A scripted model that stands the test of an endpoint."""

import re

from agent.llm.probe import TOOL_NAME
from tests.scripted_model import Answer, Request, call


def reads_meter(request: Request) -> Answer | str:
    """Calls the tool that it is offered, and repeats the number that it is told."""
    if request.messages[-1]["role"] == "tool":
        found = re.search(r"\d+", request.last_text)
        return f"The meter shows {found[0]}." if found else "nothing"
    return call(TOOL_NAME) if request.tool_names else "OK"
