"""A plugin as its row has it, with its secrets opened for the plugin alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext

from tools.models import Plugin
from tools.plugins.capabilities import effective_capabilities
from tools.plugins.config import decrypt_config
from tools.secrets.encryption import DecryptionError


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The used fields of one row. ``fault`` is the reason why the plugin cannot run, for the
    operator; "" when it can.

    ``granted`` are the capabilities that its manifest requests and the operator granted. ``named``
    are the tools that the manifest names.
    """

    pk: int
    folder: str
    plugin_id: str
    enabled: bool = False
    granted: frozenset[str] = frozenset()
    config: Mapping[str, Any] = field(default_factory=dict)
    reloads: int = 0
    fault: str = ""
    named: tuple[str, ...] = ()

    @property
    def is_wanted(self) -> bool:
        return self.enabled and not self.fault


def to_plugin_settings(row: Plugin) -> PluginSettings:
    fault, config = row.fault, dict[str, Any]()
    try:
        config = decrypt_config(row.config, row.manifest.get("config_schema"))
    except DecryptionError:
        fault = fault or gettext(
            "The secret key of this installation has changed: type the plugin's secret values anew."
        )
    return PluginSettings(
        pk=row.pk,
        folder=row.folder,
        plugin_id=row.plugin_id or row.folder,
        enabled=row.enabled,
        granted=effective_capabilities(row.granted, row.manifest.get("capabilities")),
        config=config,
        reloads=row.reloads,
        fault=fault,
        named=tuple(
            str(tool.get("name", ""))
            for tool in row.manifest.get("tools") or ()
            if isinstance(tool, dict)
        ),
    )


def load_plugin_settings() -> list[PluginSettings]:
    """Every row, by folder. To be called in the database thread."""
    return [to_plugin_settings(row) for row in Plugin.objects.order_by("folder")]
