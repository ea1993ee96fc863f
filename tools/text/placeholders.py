"""Mock values: a text in which ``{name}`` stands for an argument of the call.

``{{`` and ``}}`` are plain braces. Nothing is evaluated: a placeholder is a name and
no expression, so that whoever may edit a mock value gains nothing beyond its text.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from django.utils.translation import gettext

_PIECE = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>[^{}]*)\}|(?P<stray>[{}])")
_NAME = re.compile(r"[\w-]+")


def render_mock(template: str, arguments: Mapping[str, Any]) -> str:
    """``template`` with the arguments put in; never raises.

    Strings stand bare and everything else as JSON. An argument that was not given is
    "". What :func:`check_mock_template` would refuse stays as it is written.
    """

    def rendered(piece: re.Match[str]) -> str:
        name = piece["name"]
        if piece["brace"]:
            return piece["brace"][0]
        if name is None or not (_NAME.fullmatch(name) or name in arguments):
            return piece[0]
        return _text(arguments[name]) if name in arguments else ""

    return _PIECE.sub(rendered, template)


def check_mock_template(template: str, allowed_names: Collection[str] | None) -> list[str]:
    """What keeps ``template`` from being a mock value of a tool with these arguments: one
    translated line each.

    None: the arguments are unknown, and any name may stand in braces.
    """
    faults = []
    for piece in _PIECE.finditer(template):
        if piece["stray"]:
            line = template.count("\n", 0, piece.start()) + 1
            faults.append(
                gettext(
                    "Line %(line)d: “%(brace)s” stands alone; write it twice for a plain brace."
                )
                % {"line": line, "brace": piece["stray"]}
            )
        elif (
            allowed_names is not None
            and piece["name"] is not None
            and piece["name"] not in allowed_names
        ):
            faults.append(
                gettext("“%(placeholder)s” is not an argument of this tool. Known: %(names)s.")
                % {"placeholder": piece[0], "names": ", ".join(allowed_names) or gettext("none")}
            )
    return list(dict.fromkeys(faults))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
