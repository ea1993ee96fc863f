"""What a tool brings along for its row: the settings it starts with."""

from collections.abc import Iterable
from dataclasses import dataclass

from tools.configs import ToolSettings
from tools.contract import ToolSpec
from tools.models import ToolConfig

DEFAULT_TIMEOUT = 60
_DECLARED = ("provider_name", "parameter_names")


@dataclass(frozen=True, slots=True)
class DefaultConfig:
    """First values of a tool's row, carried in ``spec.metadata["default_config"]``."""

    mock_enabled: bool = False
    mock_value: str = ""
    timeout_seconds: int = DEFAULT_TIMEOUT


def own_settings(spec: ToolSpec) -> ToolSettings:
    """The settings of a tool that has no row (yet): what its declaration says.

    ``spec.metadata["timeout_seconds"]`` is for providers that know nothing of
    :class:`DefaultConfig`.
    """
    default = spec.metadata.get("default_config") or DefaultConfig()
    return ToolSettings(
        name=spec.name,
        mock_enabled=default.mock_enabled,
        mock_value=default.mock_value,
        timeout_seconds=spec.metadata.get("timeout_seconds", default.timeout_seconds),
    )


def ensure_rows(specs: Iterable[ToolSpec]) -> int:
    """Make a row for each tool that has none; returns how many were made.

    One query when nothing is new. What the operator made of a row stays, what the
    declaration says (provider, arguments) follows the declaration, and two processes
    that start together do not disturb each other.
    """
    wanted = {spec.name: _new_row(spec) for spec in specs}
    known = {row.name: row for row in ToolConfig.objects.only("name", *_DECLARED)}
    if missing := [row for name, row in wanted.items() if name not in known]:
        ToolConfig.objects.bulk_create(missing, ignore_conflicts=True)
    for name in wanted.keys() & known.keys():
        declared = {field: getattr(wanted[name], field) for field in _DECLARED}
        if any(getattr(known[name], field) != value for field, value in declared.items()):
            ToolConfig.objects.filter(name=name).update(**declared)
    return len(missing)


def parameter_names(tool_name: str) -> list[str] | None:
    """The arguments of the tool by its last declaration; None where no row or no schema tells."""
    names = ToolConfig.objects.filter(name=tool_name).values_list("parameter_names", flat=True).first()
    return None if names is None else [str(name) for name in names]


def _new_row(spec: ToolSpec) -> ToolConfig:
    settings = own_settings(spec)
    schema = spec.parameters_schema
    return ToolConfig(
        name=spec.name,
        provider_name=spec.provider_name,
        parameter_names=None if schema is None else list(schema.get("properties", {})),
        mock_enabled=settings.mock_enabled,
        mock_value=settings.mock_value,
        timeout_seconds=max(1, round(settings.timeout_seconds)),
    )
