"""Tools of plugins, as the registry sees them."""

import asyncio
import base64
import json
from collections.abc import Mapping

from tools.contract import (
    ToolAvailabilityContext,
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.models import PluginStatus
from tools.plugin_sdk.calls import RpcError
from tools.plugins.host import HostedTool, PluginHost
from tools.plugins.link import PluginLink
from tools.plugins.rows import PLUGIN, PluginSettings
from tools.registry import catalogue
from tools.text.untrusted import clean_tool_name as short_name

# What a plugin's tool returned, as a result. Pure. The rules are MaiBot's.

ITEMS = 50
"""Content items of one result that are taken."""
KINDS = frozenset({"text", "image", "audio", "resource_link", "resource", "binary", "unknown"})
_ALIASES = {
    "picture": "image",
    "img": "image",
    "voice": "audio",
    "file": "binary",
    "link": "resource_link",
}


def convert_plugin_result(plugin_id: str, tool_name: str, value: object) -> ToolExecutionResult:
    """The result that ``value`` stands for.

    An object reports its own success, with ``success``, ``content`` or ``message``, ``error`` and
    ``content_items``; so does a pair of a bool and a text. None is a success without text, and
    everything else a success with its text. A successful object with ``stop_after_execution`` ends
    the run.
    """
    metadata: dict[str, object] = {"plugin_id": plugin_id}
    match value:
        case None:
            return ToolExecutionResult(tool_name, success=True, metadata=metadata)
        case dict():
            return _of_object(tool_name, value, metadata)
        case [bool(success), message]:
            return _said(tool_name, success, _text(message), metadata)
        case _:
            return ToolExecutionResult(
                tool_name, success=True, content=str(value), metadata=metadata
            )


def convert_plugin_error(plugin_id: str, tool_name: str, error: RpcError) -> ToolExecutionResult:
    """The failure of a call that has no value: the tool raised something, or the plugin is not
    there."""
    return _said(
        tool_name, False, str(error), {"plugin_id": plugin_id, "error_code": str(error.code)}
    )


def _said(
    tool_name: str, success: bool, message: str, metadata: dict[str, object]
) -> ToolExecutionResult:
    if success:
        return ToolExecutionResult(tool_name, success=True, content=message, metadata=metadata)
    return ToolExecutionResult(
        tool_name,
        success=False,
        error_message=message or f"插件工具 {tool_name} 执行失败",
        metadata=metadata,
    )


def _of_object(
    tool_name: str, value: dict[str, object], metadata: dict[str, object]
) -> ToolExecutionResult:
    if bool(value.get("success", True)):
        result = _said(
            tool_name, True, _text(value.get("content")) or _text(value.get("message")), metadata
        )
        if value.get("stop_after_execution") is True:
            result.metadata["pause_execution"] = True
    else:  # its message is the error: content would be all that the model reads
        result = _said(
            tool_name, False, _text(value.get("error")) or _text(value.get("message")), metadata
        )
        result.content = _text(value.get("content"))
    items = value.get("content_items")
    result.content_items = (
        [_item(item) for item in items[:ITEMS] if isinstance(item, Mapping)]
        if isinstance(items, list)
        else []
    )
    result.structured_content = value if _is_json(value) else str(value)
    return result


def _item(given: Mapping[str, object]) -> ToolContentItem:
    """The item that ``given`` describes, under any of the names that plugins use."""
    said = str(given.get("content_type") or given.get("type") or "").lower()
    kind = _ALIASES.get(said, said)
    data, mime = _data(given)
    return ToolContentItem(
        content_type=kind if kind in KINDS else "unknown",
        text=_text(given.get("text")),
        data=data,
        mime_type=_text(given.get("mime_type") or given.get("mimeType")) or mime,
        uri=_text(given.get("uri") or given.get("url")),
        name=_text(given.get("name")),
        description=_text(given.get("description")),
        metadata={} if kind in KINDS else {"content_type": said},
    )


def _data(given: Mapping[str, object]) -> tuple[str, str]:
    """The Base64 of an item, and its type where a ``data:`` address says it."""
    data = next(
        (
            given[name]
            for name in ("data", "base64", "binary_data_base64", "image_base64")
            if given.get(name)
        ),
        "",
    )
    if isinstance(data, bytes):
        return base64.b64encode(data).decode(), ""
    text = _text(data)
    if text.startswith("data:") and ";base64," in text[:200]:
        head, _, rest = text.partition(";base64,")
        return rest, head.removeprefix("data:")
    return text, ""


def _is_json(value: object) -> bool:
    """Whether a column of JSON can hold ``value``; a float that is no number, which msgpack can
    hold, it cannot."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _text(value: object) -> str:
    return "" if value is None else str(value)


State = PluginStatus.PluginState


class PluginToolProvider:
    """The tools of all plugins that are enabled and running. A disabled plugin's tools are
    immediately neither listed nor called."""

    provider_name = "plugin_runtime"
    provider_type = PLUGIN

    def __init__(self, host: PluginHost) -> None:
        self._host = host

    def start(self) -> None:
        self._host.start()

    def listing_key(self, context: ToolAvailabilityContext | None) -> tuple[object, ...]:
        host = self._host
        links = tuple(self._link(one) for one in host.one_of_each)
        return host.tools_version, links, context if host.has_chat_limits else None

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [
            offered.tool.spec
            for offered in self._host.tools.values()
            if self._link(offered) and offered.tool.is_seen_in(context)
        ]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Run the call in the plugin. When cancelled, the plugin is asked to stop and its health is
        checked."""
        name = invocation.tool_name
        offered = self._host.tools.get(name)
        link = self._link(offered) if offered else None
        if offered is None or link is None:
            return (
                catalogue.failed_result(name, told)
                if (told := self.absence(name))
                else catalogue.not_found_result(name)
            )
        plugin_id = offered.supervisor.settings.plugin_id
        try:
            value = await link.call(
                offered.tool.name, invocation, context or ToolExecutionContext()
            )
        except RpcError as error:
            return convert_plugin_error(plugin_id, name, _worded(plugin_id, link, error))
        except asyncio.CancelledError:
            offered.supervisor.request_health_check()
            raise
        return convert_plugin_result(plugin_id, name, value)

    def absence(self, tool_name: str) -> str:
        offered = self._host.tools.get(tool_name)
        if offered is not None:
            return self._why(
                tool_name,
                self._host.settings(offered.supervisor.settings.pk) or offered.supervisor.settings,
            )
        owners = (
            each for each in self._host.all_settings() if tool_name in map(short_name, each.named)
        )
        return next(filter(None, (self._why(tool_name, owner) for owner in owners)), "")

    async def close(self) -> None:
        """End all plugins, within five seconds."""
        await self._host.close()

    def _link(self, offered: HostedTool) -> PluginLink | None:
        """The process to call, if the plugin is enabled at this moment."""
        settings = self._host.settings(offered.supervisor.settings.pk)
        return offered.supervisor.serving if settings is not None and settings.is_wanted else None

    def _why(self, tool_name: str, plugin: PluginSettings) -> str:
        """Why a tool of ``plugin`` is not there, for the model."""
        subject = f"工具 {tool_name} 暂时不可用：插件 {plugin.plugin_id} "
        if not plugin.enabled:
            return f"{subject}已被管理员停用。请改用其他工具，或如实告诉用户。"
        if plugin.fault:
            return f"{subject}有故障，需要管理员处理。请改用其他工具，或如实告诉用户。"
        supervisor = self._host.supervisor(plugin.pk)
        match supervisor.state if supervisor else State.STARTING:
            case State.BROKEN:
                return (
                    f"{subject}多次崩溃，已停止运行，需要管理员处理。"
                    "请改用其他工具，或如实告诉用户。"
                )
            case State.WAITING:
                return f"{subject}刚刚崩溃，即将重新启动。请稍后再试一次，或改用其他工具。"
            case State.STARTING:
                return f"{subject}正在启动。请稍后再试一次，或改用其他工具。"
        return ""


def _worded(plugin_id: str, link: PluginLink, error: RpcError) -> RpcError:
    """``error``, or in other words where the plugin has no say any more."""
    if link.is_retired:
        return RpcError(
            error.code, f"插件 {plugin_id} 正被停用或重新加载，这次调用没有完成，结果未知。"
        )
    if not link.is_open:
        return RpcError(
            error.code,
            f"插件 {plugin_id} 在执行时崩溃，这次调用的结果未知。它会自动重新启动，可以稍后再试。",
        )
    return error
