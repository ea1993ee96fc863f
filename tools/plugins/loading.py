"""A plugin's folder, loaded in the plugin's own process."""

import importlib
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import tools.plugin_sdk
import tools.plugin_sdk.types
from tools.error_boundary import capture_error
from tools.errors import InvalidDeclaration
from tools.plugin_sdk import Plugin
from tools.plugin_sdk.declarations import declaration_of
from tools.plugins.handlers import ToolHandler, build_handler

PACKAGE = "loaded_plugin"
"""The folder's name as a package: ``from .words import greet`` finds ``words.py`` next to
``plugin.py``."""
ENTRY = "plugin"
OLD_NAMES = {"maibot_sdk": tools.plugin_sdk, "maibot_sdk.types": tools.plugin_sdk.types}
"""What plugins for MaiBot import, where that is not installed."""


class PluginLoadError(Exception):
    """A plugin cannot be loaded; the text is the reason, first in one line, for its author and the
    operator."""


def load_plugin(folder: Path) -> tuple[Plugin, dict[str, ToolHandler]]:
    """The plugin in ``folder`` and its tools, by name. All of it, or :class:`PluginLoadError`."""
    with capture_error() as attempt:
        plugin, functions = _found(_module(folder))
        handlers = [build_handler(function, declaration_of(function)) for function in functions]  # type: ignore[arg-type]
    if attempt.error is not None:
        raise PluginLoadError(describe_load_error(attempt.error, folder)) from attempt.error
    if not handlers:
        raise PluginLoadError(
            f"{ENTRY}.py declares no tool: put @Tool above a function or a method of the plugin"
        )
    names = [handler.name for handler in handlers]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PluginLoadError(f"two tools have the name {', '.join(twice)}")
    return plugin, dict(zip(names, handlers, strict=True))


def describe_load_error(error: BaseException, folder: Path) -> str:
    """What went wrong, in one line, and below it where: the traceback without our own part of
    it."""
    words = traceback.format_exception_only(error)[-1].strip()
    linecache.checkcache()
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        words = f"{Path(error.filename).name}, line {error.lineno}: {words}"
    elif frames:
        words = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: {words}"
    return "\n".join([words, *(line.rstrip() for line in traceback.format_list(frames))])


def _module(folder: Path) -> ModuleType:
    if importlib.util.find_spec("maibot_sdk") is None:
        sys.modules.update(OLD_NAMES)
    try:
        _as_package(folder)
        return importlib.import_module(f"{PACKAGE}.{ENTRY}")
    except SystemExit as error:
        raise ImportError(
            f"it ended the process while it was imported: SystemExit {error}"
        ) from error


def _as_package(folder: Path) -> None:
    """Make ``folder`` the package ``PACKAGE``, whatever its own name, and run its ``__init__.py``
    if it has one."""
    start = folder / "__init__.py"
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    if start.is_file():
        found = importlib.util.spec_from_file_location(
            PACKAGE, start, submodule_search_locations=[str(folder)]
        )
        spec = found or spec
    spec.submodule_search_locations = [str(folder)]
    package = sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    if spec.loader is not None:
        spec.loader.exec_module(package)


def _found(module: ModuleType) -> tuple[Plugin, list[Any]]:
    """The plugin that ``module`` makes, and every function in it that was declared a tool."""
    plugin = _made(module)
    functions = [
        thing
        for thing in vars(module).values()
        if str(getattr(thing, "__module__", "")).startswith(PACKAGE)
    ]
    return plugin, [each for each in (*_methods(plugin), *functions) if declaration_of(each)]


def _made(module: ModuleType) -> Plugin:
    make = getattr(module, "create_plugin", None)
    if callable(make):
        if not isinstance(made := make(), Plugin):
            raise InvalidDeclaration(
                f"create_plugin() returns {type(made).__name__}; a Plugin is wanted"
            )
        return made
    kinds = [thing for thing in vars(module).values() if _is_plugin(thing, module)]
    if len(kinds) > 1:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InvalidDeclaration(
            f"{ENTRY}.py has several plugins: {names}; say which with create_plugin()"
        )
    return kinds[0]() if kinds else Plugin()


def _is_plugin(thing: Any, module: ModuleType) -> bool:
    return (
        isinstance(thing, type)
        and issubclass(thing, Plugin)
        and thing.__module__ == module.__name__
    )


def _methods(plugin: Plugin) -> Iterator[Any]:
    """The methods of ``plugin``, each once, those of its bases first, in source order."""
    names = dict.fromkeys(name for kind in reversed(type(plugin).__mro__) for name in vars(kind))
    for name in names:
        if declaration_of(getattr(type(plugin), name, None)):
            yield getattr(plugin, name)
