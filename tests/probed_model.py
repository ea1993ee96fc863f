"""A scripted model that stands the test of an endpoint."""

import base64
import re
import zlib

from agent.llm.probing.probe import COLOURS, TOOL_NAME
from tests.scripted_model import Answer, Request, call


def reads_meter(request: Request) -> Answer | str:
    """Calls the tool that it is offered, and repeats the number that it is told; sees
    colours."""
    if request.messages[-1]["role"] == "tool":
        found = re.search(r"\d+", request.last_text)
        return f"The meter shows {found[0]}." if found else "nothing"
    if isinstance(parts := request.messages[-1]["content"], list):
        return _colour(parts[-1]["image_url"]["url"])
    return call(TOOL_NAME) if request.tool_names else "OK"


def _colour(url: str) -> str:
    """The name of the colour of the picture's first pixel."""
    png = base64.b64decode(url.partition(",")[2])
    begin = png.index(b"IDAT")
    size = int.from_bytes(png[begin - 4 : begin], "big")
    red, green, blue = zlib.decompress(png[begin + 4 : begin + 4 + size])[1:4]
    return COLOURS[red, green, blue][0].capitalize()
