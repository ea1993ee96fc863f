"""Loading a plugin once to see whether it can be, with its defaults for a configuration and nothing
granted."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext

from tools.contract import ToolSpec
from tools.plugin_sdk.calls import RpcError, RpcErrorCode
from tools.plugins.capabilities import CallInFlight
from tools.plugins.config import decrypt_config
from tools.plugins.declared import UnusableTools, build_plugin_tools
from tools.plugins.link import LoadFailed, PluginLink
from tools.plugins.manifest import Manifest
from tools.plugins.process_limits import ProcessLimits
from tools.plugins.rows import PluginSettings


@dataclass(slots=True)
class LoadTrial:
    """What came of it: the tools, or the ``problems``; and the ``lines`` that the plugin logged and
    printed."""

    tools: list[ToolSpec] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def line(self, plugin_pk: int, level: str, text: str) -> bool:
        self.lines.append(text)
        return True

    async def run_capability(
        self, plugin: PluginSettings, call: CallInFlight | None, name: str, arguments: Any
    ) -> Any:
        raise RpcError(
            RpcErrorCode.CAPABILITY_DENIED, f"{name} is not granted while the plugin is checked"
        )


async def try_loading(folder: Path, manifest: Manifest) -> LoadTrial:
    """Load the plugin in ``folder`` in a process of its own, and end that."""
    trial = LoadTrial()
    config = decrypt_config({}, manifest.config_schema)
    plugin = PluginSettings(
        pk=0, folder=folder.name, plugin_id=manifest.id, enabled=True, config=config
    )
    try:
        link = await PluginLink.open(folder, lambda: plugin, ProcessLimits.from_settings(), trial)
    except LoadFailed as error:
        trial.problems += [str(error), *filter(None, [error.details])]
        return trial
    except OSError as error:
        trial.problems.append(gettext("No process can be started: %(reason)s") % {"reason": error})
        return trial
    try:
        trial.tools = [tool.spec for tool in build_plugin_tools(manifest.id, link.declarations)]
    except UnusableTools as unusable:
        trial.problems.append(str(unusable))
    await link.drain_and_close(0)
    trial.problems += _unlike(manifest, [spec.name for spec in trial.tools])
    return trial


def _unlike(manifest: Manifest, names: list[str]) -> list[str]:
    """Differences between the tools in the manifest and the real ones; none for a manifest without
    tools."""
    named = {tool.name for tool in manifest.tools}
    if not named or named == set(names):
        return []
    lines = [
        gettext("The manifest names the tool %(name)s, and the plugin has none.") % {"name": name}
        for name in named - set(names)
    ]
    return sorted(
        [
            *lines,
            *(
                gettext("The tool %(name)s is not named in the manifest.") % {"name": name}
                for name in set(names) - named
            ),
        ]
    )
