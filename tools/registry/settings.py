"""Tool settings as the run loop reads them: a frozen copy of the rows, reloaded when they
change."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from tools.models import ToolConfig
from tools.models.tool_config import (
    AllowedCallers,
    ApprovalMode,
    OtherChat,
    ToolScope,
    ToolVisibility,
    parse_ids,
    parse_other_chats,
)


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """One row of the tool configs. An empty ``description`` keeps the tool's own; a limit of 0
    means no limit.

    ``provider_name`` is where the tool came from when it was last listed, ``looked_at`` the
    fingerprint of the reviewed declaration (see :mod:`tools.registry.catalogue`).
    """

    name: str
    enabled: bool = True
    mock_enabled: bool = False
    mock_value: str = ""
    description: str = ""
    timeout_seconds: float = 60
    visibility: str = ToolVisibility.VISIBLE.value
    pinned: bool = False
    scope: str = ToolScope.ALL.value
    allowed: str = AllowedCallers.EVERYONE.value
    allowed_ids: frozenset[str] = frozenset()
    other_chats: tuple[OtherChat, ...] = ()
    requires_approval: str = ApprovalMode.OWN.value
    calls_per_minute_person: int = 0
    calls_per_minute_chat: int = 0
    calls_per_day_chat: int | None = None
    parameter_descriptions: Mapping[str, str] = field(default_factory=dict)
    provider_name: str = ""
    looked_at: str = ""
    pk: int | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """What the record calls the row; "" where there is none."""
        return "" if self.pk is None else f"#{self.pk} {self.name}"


_FIELDS = tuple(entry.name for entry in fields(ToolSettings))


def load_tool_settings() -> dict[str, ToolSettings]:
    """Every row by tool name, in one query."""
    found = dict[str, ToolSettings]()
    for row in ToolConfig.objects.values(*_FIELDS).order_by("name"):
        row["allowed_ids"] = frozenset(parse_ids(row["allowed_ids"]))
        row["other_chats"] = parse_other_chats(row["other_chats"])
        found[row["name"]] = ToolSettings(**row)
    return found
