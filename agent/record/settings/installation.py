"""The row of the installation, as the process and its pages see it: the clock, and what counts in
place of the environment."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import BooleanField
from django.utils.translation import trans_real

from agent.models import Installation
from agent.models.installation import NONE, VARIABLES
from agent.record.ground.statements import Statement
from tools.local_time import Clock

GIB = 2**30
#: Variables in GiB, whose settings are in bytes.
IN_BYTES = {f"{name}_GIB": f"{name}_BYTES" for name in ("MEDIA_KEEP", "MEDIA_FREE", "BACKUP_KEEP")}
_CLOCK = ("time_zone", "changed_on", "begun_on")
_SAID = {variable.lower(): variable for variable in VARIABLES}
#: SQLite has no type for them.
_YES_OR_NO = frozenset(
    field.name for field in Installation._meta.fields if isinstance(field, BooleanField)
)
#: Every page begins with it.
_find_row = Statement(
    f"SELECT {', '.join((*_CLOCK, *_SAID))} FROM agent_installation WHERE id = %(only)s"  # noqa: S608 - names of columns
)


def load_installation() -> tuple[Clock, dict[str, Any]]:
    """The clock as the row has it, the machine's without one; and what the row says in place of the
    environment, by the name of Django's setting. One query."""
    rows = _find_row.rows(only=Installation.ONLY)
    if not rows:
        return Clock(), {}
    clock, values = Clock(*rows[0][: len(_CLOCK)]), zip(_SAID, rows[0][len(_CLOCK) :], strict=True)
    said: dict[str, Any] = {
        _SAID[name]: bool(value) if name in _YES_OR_NO else value
        for name, value in values
        if value not in (None, "")
    }
    if "MCP_ALLOWED_COMMANDS" in said:
        lines = said["MCP_ALLOWED_COMMANDS"].split()
        said["MCP_ALLOWED_COMMANDS"] = [line for line in lines if line != NONE]
    for variable in IN_BYTES.keys() & said.keys():
        said[IN_BYTES[variable]] = int(said.pop(variable) * GIB)
    return clock, said


class _ProcessSettings:
    """What counts in this process, and what the environment says of the same."""

    said: Mapping[str, Any] = {}
    environment: dict[str, Any] = {}  # noqa: RUF012 - one for the process


def obey(said: Mapping[str, object]) -> None:
    """Have ``said`` count in this process in place of the environment; what is not among it is as
    the environment has it."""
    if said == _ProcessSettings.said:
        return
    _ProcessSettings.said = said
    for name in _ProcessSettings.environment.keys() - said.keys():
        setattr(settings, name, _ProcessSettings.environment.pop(name))
    for name, value in said.items():
        _ProcessSettings.environment.setdefault(name, getattr(settings, name))
        setattr(settings, name, value)
    trans_real._default = None  # type: ignore[attr-defined]  # the language of threads without one


def environment_value(name: str) -> Any:
    """What the environment says of Django's setting ``name``, or its default."""
    return _ProcessSettings.environment.get(name, getattr(settings, name))
