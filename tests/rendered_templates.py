"""Chat templates of public models, and what they make of requests, as servers of local models do.

Most come from npm (``tests/chat_templates``), with the program that renders them. They are
installed and skipped as :mod:`tests.reference_servers` does with its servers. Those in
``tests/chat_templates/formats`` are of no package: turn formats, written after what is public.
"""

import json
import subprocess
from typing import Any, NamedTuple

from tests.environment import PROJECT
from tests.reference_servers import installed_node

FOLDER = PROJECT / "tests" / "chat_templates"
FORMATS = FOLDER / "formats"
OLDEST_NODE = 20


class Rendered(NamedTuple):
    """What one template made of the requests that all have, and of its own."""

    name: str
    shared: list[str | None]
    special: list[str | None]


def render_all(
    shared: list[dict[str, Any]], special: list[list[dict[str, Any]]] | None = None
) -> list[Rendered]:
    """The texts that all templates make of ``shared``, and each of its requests in ``special``."""
    node = installed_node(FOLDER, OLDEST_NODE)
    own = [(file.stem, file.read_text("utf-8")) for file in sorted(FORMATS.glob("*.jinja"))]
    asked = {"own": own, "shared": shared, "special": special or []}
    done = subprocess.run(
        [node, str(FOLDER / "render.mjs")],
        input=json.dumps(asked).encode(),
        capture_output=True,
        check=True,
        timeout=120,
    )
    return [
        Rendered(name, texts[: len(shared)], texts[len(shared) :])
        for name, texts in json.loads(done.stdout)
    ]
