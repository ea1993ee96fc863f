"""The base of plugins that are classes."""

from collections.abc import Mapping
from typing import Any

from tools.plugin_sdk.context import Context, ctx


class Plugin:
    """A plugin. Its methods that carry :func:`tools.plugin_sdk.Tool` are its tools.

    ``plugin.py`` has one subclass of this, or a function ``create_plugin()`` that returns
    an instance. The methods below may be ``async def`` or ``def``.
    """

    @property
    def ctx(self) -> Context:
        return ctx

    @property
    def config(self) -> Mapping[str, Any]:
        """What the operator has set, by the manifest's ``config_schema``."""
        return ctx.config

    async def on_load(self) -> None:
        """Called once, before the first call. What it raises keeps the plugin from being loaded."""

    async def on_unload(self) -> None:
        """Called before the process ends in good order, within a few seconds."""

    async def on_config_update(self, config: Mapping[str, Any]) -> None:
        """Called when the operator has changed the configuration; ``self.config`` is new already.

        MaiBot's form with ``(scope, config_data, version)`` is called as well, with the
        scope "self".
        """
