"""``plugin new NAME`` makes a working example in the plugins folder; ``plugin check NAME`` loads
one and says what is wrong.

The check loads it once, with its defaults for a configuration and nothing granted.
"""

import asyncio
import json
import re
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext, gettext as _

from tools.contract import ToolSpec
from tools.plugin_sdk.calls import RpcError, RpcErrorCode
from tools.plugins.capabilities import CallInFlight
from tools.plugins.link import LoadFailed, PluginLink
from tools.plugins.manifest import MANIFEST, Manifest, ManifestError, read_manifest
from tools.plugins.process import ProcessLimits
from tools.plugins.rows import PluginSettings, UnusableTools, build_plugin_tools, decrypt_config


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
        self, plugin: PluginSettings, call: CallInFlight | None, name: str, arguments: object
    ) -> object:
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


class Command(BaseCommand):
    help = (
        "Make a new plugin, or check one: it is loaded in a process of its own, as the server "
        "would."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="new|check")
        new = actions.add_parser("new", help="Make a working example in the plugins folder.")
        new.add_argument("name", help="The name of the folder to make, like weather_news.")
        check = actions.add_parser(
            "check", help="Load a plugin and list its tools, or say why that is not possible."
        )
        check.add_argument(
            "folder", help="The name of a folder in the plugins folder, or the path of another."
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        if options["action"] == "new":
            self._new(options["name"])
        else:
            self._check(options["folder"])

    def _new(self, name: str) -> None:
        if problem := check_plugin_name(name):
            raise CommandError(problem)
        folder = Path(settings.PLUGINS_DIR) / name
        try:
            folder.mkdir(parents=True)
            for file, text in example_files(name).items():
                (folder / file).write_text(text, encoding="utf-8")
        except FileExistsError:
            raise CommandError(
                _("%(folder)s is there already; nothing was changed.") % {"folder": folder}
            ) from None
        except OSError as error:
            raise CommandError(
                _("%(folder)s cannot be written: %(reason)s")
                % {"folder": folder, "reason": error.strerror}
            ) from error
        self.stdout.write(self.style.SUCCESS(_("Made %(folder)s") % {"folder": folder}))
        self.stdout.write(
            _(
                "Next: enable it in the admin under Plugins, and change plugin.py: each time it is "
                "saved, it is loaded anew."
            )
        )
        self.stdout.write(
            _("To see what is wrong with it: manage.py plugin check %(name)s") % {"name": name}
        )

    def _check(self, wanted: str) -> None:
        folder = next(
            (
                each
                for each in (Path(settings.PLUGINS_DIR) / wanted, Path(wanted))
                if (each / MANIFEST).is_file()
            ),
            None,
        )
        if folder is None:
            raise CommandError(
                _("There is no plugin %(name)s: no folder with %(file)s.")
                % {"name": wanted, "file": MANIFEST}
            )
        try:
            manifest = read_manifest(folder)
        except ManifestError as problem:
            raise CommandError("\n".join([f"{MANIFEST}:", *problem.lines])) from None
        trial = asyncio.run(try_loading(folder.resolve(), manifest))
        self._tell(trial)
        if trial.problems:
            raise CommandError("\n".join(trial.problems))
        self.stdout.write(
            self.style.SUCCESS(
                _("%(name)s %(version)s is sound.")
                % {"name": manifest.id, "version": manifest.version}
            )
        )

    def _tell(self, trial: LoadTrial) -> None:
        for line in trial.lines:
            self.stdout.write(f"  | {line}")
        for spec in trial.tools:
            self.stdout.write(
                f"{spec.name}: {spec.description.splitlines()[0] if spec.description else '-'}"
            )
