"""Tool settings as the run loop reads them: a frozen copy of the rows, reloaded when they change."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tools.models import ConfigVersion, ToolConfig


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """One row of the tool configs. An empty ``description`` leaves the tool its own."""

    name: str
    enabled: bool = True
    mock_enabled: bool = False
    mock_value: str = ""
    description: str = ""
    timeout_seconds: float = 60


def load_settings() -> dict[str, ToolSettings]:
    """Every row by tool name, in one query."""
    rows = ToolConfig.objects.values_list(
        "name", "enabled", "mock_enabled", "mock_value", "description", "timeout_seconds"
    ).order_by("name")
    return {row[0]: ToolSettings(*row) for row in rows}


class SettingsCache:
    """The settings of this process, as new as the last :meth:`refresh`.

    ``refresh`` belongs to the thread that talks to the database; ``current`` may be
    read anywhere, at any time. The mapping is replaced and never changed, so that its
    identity tells whether anything is new.
    """

    def __init__(self) -> None:
        self._version: int | None = None
        self._current: Mapping[str, ToolSettings] = MappingProxyType({})

    @property
    def current(self) -> Mapping[str, ToolSettings]:
        """The mapping loaded last, empty before the first refresh. No I/O."""
        return self._current

    def refresh(self) -> Mapping[str, ToolSettings]:
        """Load the rows if any was changed, by any process, since they were loaded last."""
        # The number first: a change between the two queries is then loaded twice, never missed.
        version = ConfigVersion.current()
        if version != self._version:
            self._current = MappingProxyType(load_settings())
            self._version = version
        return self._current
