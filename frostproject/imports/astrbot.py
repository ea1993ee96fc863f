"""AstrBot's data folder. Pure."""

from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.databases import Tables
from frostproject.imports.documents import as_object, as_objects, as_text, as_texts, load_column
from frostproject.imports.plan import Found, Kind

CHAT = "_chat_completion"
#: Kinds whose address speaks another protocol than OpenAI's chat completions.
OTHER_PROTOCOLS = ("anthropic", "googlegenai", "kimi_code")
OWN_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "groq": "https://api.groq.com/openai/v1",
    "xai": "https://api.x.ai/v1",
    "zhipu": "https://open.bigmodel.cn/api/paas/v4",
    "openrouter": "https://openrouter.ai/api/v1",
}
TAKEN = frozenset(
    {
        *("provider", "provider_sources", "provider_settings", "wake_prefix", "platform"),
        *("platform_settings", "admins_id", "config_version", "persona"),
    }
)
CHATS = {"GroupMessage": "group:", "FriendMessage": "private:"}
READ_OF_PROVIDER = frozenset(
    {
        *("id", "type", "key", "proxy", "api_base", "model", "model_config", "custom_headers"),
        *("custom_extra_body", "enable", "timeout", "provider_source_id", "provider_type"),
        "provider",
    }
)
READ_OF_PLATFORM = frozenset(
    {
        *("reply_with_mention", "reply_with_quote", "id_whitelist", "enable_id_white_list"),
        *("rate_limit", "segmented_reply"),
    }
)
READ_OF_SETTINGS = frozenset({"default_provider_id", "fallback_chat_models", "default_personality"})
READ_OF_PERSONA = frozenset(
    {
        *("persona_id", "system_prompt", "begin_dialogs", "tools", "name", "prompt"),
        *("id", "created_at", "updated_at"),
    }
)
SWITCHES = {"mention": "reply_with_mention", "quote": "reply_with_quote"}


def read_astrbot(config: dict[str, Any], tables: Tables, found: Found) -> None:
    """What ``cmd_config.json`` and the tables of ``data_v4.db`` say."""
    settings = as_object(config.get("provider_settings"))
    first, others = settings.get("default_provider_id"), settings.get("fallback_chat_models")
    asked = [*as_texts(first), *as_texts(others)]
    order = {name: place for place, name in reversed([*enumerate(asked)])}
    sources = {as_text(one.get("id")): one for one in as_objects(config.get("provider_sources"))}
    # The model's row lies over its source's; they come in the order in which they are asked.
    rows = as_objects(config.get("provider"))
    for one in sorted(rows, key=lambda row: order.get(as_text(row.get("id")), len(asked))):
        _read_provider(sources.get(as_text(one.get("provider_source_id")), {}) | one, found)
    for name in sorted(sources.keys() - {as_text(one.get("provider_source_id")) for one in rows}):
        found.leave(f"provider_sources {name}", _("no model there asks it"))
    _read_manners(config, found)
    _name_rest(config, settings, found)
    for row in tables.get("personas", []):
        lists = {name: load_column(row, name) for name in ("begin_dialogs", "tools", "skills")}
        read_persona(row | lists, found)
    for one in as_objects(config.get("persona")):
        mapped = {"persona_id": one.get("name"), "system_prompt": one.get("prompt")}
        read_persona(one | mapped, found)
    for table in ("conversations", "cron_jobs", "platform_message_history"):
        if tables.get(table):
            found.leave(table, _("what was said and planned there is not taken over"))


def _read_provider(row: dict[str, Any], found: Found) -> None:
    name, kind = as_text(row.get("id")), as_text(row.get("type"))
    family = kind.removesuffix(CHAT)
    if family == kind:
        return found.leave(name, _("no chat model of OpenAI's form (%s)") % (kind or "-"))
    if family in OTHER_PROTOCOLS:
        return found.leave(
            name,
            _("it speaks another protocol (%s); enter the provider's OpenAI-compatible address"),
            kind,
        )
    keys = as_texts(row.get("key"))
    own = [key for key in keys if not key.startswith("$")]
    if own != keys:
        found.leave(f"{name}: key", _("it stands in the environment there; enter it here"))
    if as_text(row.get("proxy")):
        found.leave(f"{name}: proxy", _("calls go out directly here"))
    found.leave_rest(name, row, READ_OF_PROVIDER)
    return found.add(
        Kind.ENDPOINT,
        name,
        base_url=as_text(row.get("api_base")) or OWN_ADDRESSES.get(family, ""),
        model=as_text(row.get("model") or as_object(row, "model_config").get("model")),
        keys=own,
        headers={key: as_text(one) for key, one in as_object(row, "custom_headers").items()},
        enabled=row.get("enable") is not False,
        timeout_seconds=as_text(row.get("timeout")),
        extra_body=as_object(row, "custom_extra_body"),
    )


def _read_manners(config: dict[str, Any], found: Found) -> None:
    settings = as_object(config.get("platform_settings"))
    values: dict[str, Any] = {
        ours: True for ours, theirs in SWITCHES.items() if settings.get(theirs) is True
    }
    if prefixes := as_texts(config.get("wake_prefix")):
        values["wake_prefixes"] = "\n".join(prefixes)
    if values:
        found.add(Kind.MANNERS, "AstrBot", **values)
    chats = []
    listed = as_texts(settings.get("id_whitelist"))
    for entry in listed if settings.get("enable_id_white_list") is True else []:
        _platform, _colon, rest = entry.partition(":")
        kind, _colon, number = rest.partition(":")
        if entry.isalnum():  # a bare number is a group
            chats.append(f"group:{entry}")
        elif number and kind in CHATS:
            chats.append(CHATS[kind] + number)
        else:
            found.leave(f"id_whitelist: {entry}", _("no group and no person of QQ"))
    if chats:
        found.allow_chats("AstrBot", chats)


def _name_rest(config: dict[str, Any], settings: dict[str, Any], found: Found) -> None:
    for one in as_objects(config.get("platform")):
        found.leave(
            f"platform {as_text(one.get('id'))}",
            _("enter the address of this server in the client (%s there)"),
            (as_text(one.get("type")) or "-"),
        )
    platform = as_object(config.get("platform_settings"))
    owners = [one for one in as_texts(config.get("admins_id")) if one != "astrbot"]
    default = as_text(settings.get("default_personality"))
    other_form = _("there is no such setting in the same form; see “Manners”")
    chosen = _("“%s” is not made the default; choose on its page where it answers")
    for name, value, words in (
        ("admins_id", ", ".join(owners), _("owners; enter them on the account's page: %s")),
        ("default_personality", default, chosen),
        *((name, platform.get(name), other_form) for name in ("rate_limit", "segmented_reply")),
    ):
        if value:
            found.leave(name, words % value if "%s" in words else words)
    found.leave_rest("", config, TAKEN)
    found.leave_rest("platform_settings", platform, READ_OF_PLATFORM)
    found.leave_rest("provider_settings", settings, READ_OF_SETTINGS)


def read_persona(given: dict[str, Any], found: Found, name: str = "") -> None:
    """A persona as AstrBot exports one; without a name of its own it has ``name``."""
    name = as_text(given.get("persona_id")) or name
    turns = given.get("begin_dialogs")
    said = [as_text(one) for one in turns] if isinstance(turns, list) else []
    if len(said) % 2 or not all(said):
        found.leave(f"{name}: begin_dialogs", _("not in turns; AstrBot does not use them either"))
        said = []
    tools: dict[str, Any] = {}
    if isinstance(given.get("tools"), list):
        tools = {"tool_choice": "only", "tools": "\n".join(as_texts(given["tools"]))}
    pairs = [list(pair) for pair in zip(said[::2], said[1::2], strict=True)]
    prompt = as_text(given.get("system_prompt"))
    found.add(Kind.PERSONA, name, prompt=prompt, examples=pairs, **tools)
    found.leave_rest(name, given, READ_OF_PERSONA)


def read_servers(document: dict[str, Any], found: Found) -> None:
    """The servers of ``mcpServers`` as AstrBot writes them, and as everybody does."""
    for name, given in as_object(document.get("mcpServers")).items():
        entry = dict(as_object(given))
        if "active" in entry:
            entry["enabled"] = entry.pop("active")
        if as_text(entry.get("command")) == "env":
            arguments = as_texts(entry.get("args"))
            count = next((i for i, one in enumerate(arguments) if "=" not in one), len(arguments))
            pairs = dict(one.split("=", 1) for one in arguments[:count])
            entry["env"] = as_object(entry.get("env")) | pairs
            entry["command"] = "".join(arguments[count : count + 1])
            entry["args"] = arguments[count + 1 :]
        found.add(Kind.SERVER, name, **entry)
