"""The files of a new plugin. Pure."""

import json
import re
from pathlib import Path
from string import Template

from django.utils.translation import gettext

from tools.plugins.manifest import MANIFEST

NAME = re.compile(r"[a-z](?:[a-z0-9]|[_-](?=[a-z0-9])){1,39}")
_PLUGIN = Path(__file__).with_name("example_plugin.txt")


def check_plugin_name(name: str) -> str:
    """Why no plugin can be called ``name``, translated; "" when one can."""
    if NAME.fullmatch(name):
        return ""
    return gettext(
        "“%(name)s” cannot be the name of a plugin: 2 to 40 lower-case letters and digits, parts "
        "joined by _ or -, "
        "a letter first, like weather_news."
    ) % {"name": name}


def example_files(name: str) -> dict[str, str]:
    """The text of each file of a working plugin called ``name``, by the file's name."""
    words = re.split("[_-]", name)
    tool_name = f"{'_'.join(words)}_repeat"
    title = " ".join(words)
    source = Template(_PLUGIN.read_text(encoding="utf-8"))
    plugin = source.substitute(
        title=title.capitalize(),
        class_name=f"{title.title().replace(' ', '')}Plugin",
        tool_name=tool_name,
    )
    separator = {"type": "string", "default": " ", "title": "每两遍之间的文字"}
    manifest = {
        "manifest_version": 2,
        "id": f"local.{'-'.join(words)}",
        "version": "0.1.0",
        "name": title,
        "description": "What it is for, in a sentence.",
        "author": {"name": "me"},
        "license": "MIT",
        "dependencies": [],
        "capabilities": [],
        "tools": [{"name": tool_name, "description": "把一段文字重复几遍"}],
        "config_schema": {
            "type": "object",
            "properties": {"separator": separator},
            "additionalProperties": False,
        },
    }
    return {
        MANIFEST: json.dumps(manifest, ensure_ascii=False, indent=2) + "\n",
        "plugin.py": plugin,
    }
