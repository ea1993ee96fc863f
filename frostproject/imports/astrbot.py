"""AstrBot's data folder. Pure."""

from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.databases import Tables
from frostproject.imports.documents import load_column, load_json
from frostproject.imports.plan import Found, Kind, as_object, as_objects, as_text, as_texts

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


def read_astrbot(files: dict[str, bytes], tables: Tables) -> Found:
    """What is in ``cmd_config.json``, ``mcp_server.json`` and the tables of ``data_v4.db``."""
    found = Found()
    config = {}
    if data := files.get("cmd_config.json"):
        config = as_object(load_json(data, "cmd_config.json"))
        _read_providers(config, found)
        _read_manners(config, found)
        _read_rest(config, found)
    if data := files.get("mcp_server.json"):
        read_servers(load_json(data, "mcp_server.json"), found)
    _read_personas(tables, as_objects(config.get("persona")), found)
    for name in sorted(files):
        if name.startswith("abconf_"):
            found.leave(name, _("settings of single chats; make them under “Manners” here"))
    for table in ("conversations", "cron_jobs", "platform_message_history"):
        if tables.get(table):
            found.leave(table, _("what was said and planned there is not taken over"))
    return found


def _read_providers(config: dict[str, Any], found: Found) -> None:
    """The model's row lies over its source's; the one that is asked first comes first."""
    sources = {as_text(one.get("id")): one for one in as_objects(config.get("provider_sources"))}
    settings = as_object(config.get("provider_settings"))
    first = as_text(settings.get("default_provider_id"))
    rows = [
        sources.get(as_text(one.get("provider_source_id")), {}) | one
        for one in as_objects(config.get("provider"))
    ]
    for row in sorted(rows, key=lambda row: as_text(row.get("id")) != first):
        _read_provider(row, found)


def _read_provider(row: dict[str, Any], found: Found) -> None:
    name, kind = as_text(row.get("id")), as_text(row.get("type"))
    family = kind.removesuffix(CHAT)
    if not kind.endswith(CHAT):
        return found.leave(name, _("no chat model of OpenAI's form (%s)") % (kind or "-"))
    if family in OTHER_PROTOCOLS:
        words = _("it speaks another protocol (%s); enter the provider's OpenAI-compatible address")
        return found.leave(name, words % kind)
    keys = as_texts(row.get("key"))
    if any(key.startswith("$") for key in keys):
        found.leave(f"{name}: key", _("it stands in the environment there; enter it here"))
    if as_text(row.get("proxy")):
        found.leave(f"{name}: proxy", _("calls go out directly here"))
    found.add(
        Kind.ENDPOINT,
        name,
        base_url=as_text(row.get("api_base")) or OWN_ADDRESSES.get(family, ""),
        model=as_text(row.get("model")) or as_text(as_object(row.get("model_config")).get("model")),
        keys=[key for key in keys if not key.startswith("$")],
        headers={key: as_text(one) for key, one in as_object(row.get("custom_headers")).items()},
        enabled=row.get("enable") is not False,
        timeout_seconds=as_text(row.get("timeout")),
    )
    return None


def _read_manners(config: dict[str, Any], found: Found) -> None:
    settings = as_object(config.get("platform_settings"))
    values: dict[str, Any] = {"wake_prefixes": "\n".join(as_texts(config.get("wake_prefix")))}
    for ours, theirs in (("mention", "reply_with_mention"), ("quote", "reply_with_quote")):
        values |= {ours: True} if settings.get(theirs) is True else {}
    if any(values.values()):
        found.add(Kind.MANNERS, "AstrBot", **values)
    listed = as_texts(settings.get("id_whitelist"))
    if settings.get("enable_id_white_list") is True and listed:
        chats = [chat for one in listed if (chat := _find_chat(one, found))]
        allow_chats("AstrBot", chats, found)


def _find_chat(entry: str, found: Found) -> str:
    _platform, _colon, rest = entry.partition(":")
    kind, _colon, number = rest.partition(":")
    chat = f"group:{entry}" if entry.isalnum() else ""
    chat = {"GroupMessage": f"group:{number}", "FriendMessage": f"private:{number}"}.get(kind, chat)
    if not chat:
        found.leave(f"id_whitelist: {entry}", _("no group and no person of QQ"))
    return chat


def allow_chats(program: str, chats: list[str], found: Found) -> None:
    """Of each account, nobody is answered but in ``chats``."""
    if chats:
        found.add(Kind.MANNERS, f"{program}: others", by_account=True, answered="nobody")
        found.add(
            Kind.MANNERS,
            f"{program}: allowed",
            by_account=True,
            answered="everybody",
            chats="\n".join(chats),
        )


def _read_rest(config: dict[str, Any], found: Found) -> None:
    settings = as_object(config.get("provider_settings"))
    for one in as_objects(config.get("platform")):
        words = _("enter the address of this server in the client (%s there)")
        found.leave(f"platform {as_text(one.get('id'))}", words % (as_text(one.get("type")) or "-"))
    if owners := [one for one in as_texts(config.get("admins_id")) if one != "astrbot"]:
        words = _("owners; enter them on the account's page: %s")
        found.leave("admins_id", words % ", ".join(owners))
    if name := as_text(settings.get("default_personality")):
        words = _("“%s” is not made the default; choose on its page where it answers")
        found.leave("default_personality", words % name)
    platform = as_object(config.get("platform_settings"))
    for name in ("rate_limit", "segmented_reply"):
        if platform.get(name):
            found.leave(name, _("there is no such setting in the same form; see “Manners”"))
    if rest := sorted(key for key, value in config.items() if key not in TAKEN and value):
        found.leave(", ".join(rest), _("settings that have no counterpart here"))


def _read_personas(tables: Tables, older: list[dict[str, Any]], found: Found) -> None:
    for row in tables.get("personas", []):
        name = as_text(row.get("persona_id"))
        read_persona(
            {
                "persona_id": name,
                "system_prompt": row.get("system_prompt"),
                "begin_dialogs": load_column(row.get("begin_dialogs"), name),
                "tools": load_column(row.get("tools"), name),
            },
            found,
        )
        if load_column(row.get("skills"), name):
            found.leave(f"{name}: skills", _("there are none here"))
    for one in older:
        mapped = {"persona_id": one.get("name"), "system_prompt": one.get("prompt")}
        read_persona(one | mapped, found)


def read_persona(given: dict[str, Any], found: Found, name: str = "") -> None:
    """A persona as AstrBot exports one; without a name of its own it has ``name``."""
    name = as_text(given.get("persona_id")) or name
    turns = given.get("begin_dialogs")
    listed = turns if isinstance(turns, list) else []
    said = [one if isinstance(one, str) else "" for one in listed]
    pairs = [list(pair) for pair in zip(said[::2], said[1::2], strict=False)]
    if len(said) % 2 or not all(all(pair) for pair in pairs):
        found.leave(f"{name}: begin_dialogs", _("not in turns; AstrBot does not use them either"))
        pairs = []
    tools: dict[str, Any] = {}
    if isinstance(given.get("tools"), list):
        tools = {"tool_choice": "only", "tools": "\n".join(as_texts(given["tools"]))}
    prompt = as_text(given.get("system_prompt"))
    found.add(Kind.PERSONA, name, prompt=prompt, examples=pairs, **tools)


def read_servers(document: object, found: Found) -> None:
    """The servers of ``mcpServers`` as AstrBot writes them, and as everybody does."""
    servers = as_object(as_object(document).get("mcpServers"))
    for name, given in servers.items():
        entry = dict(as_object(given))
        if "active" in entry:
            entry["enabled"] = entry.pop("active")
        arguments = as_texts(entry.get("args"))
        if as_text(entry.get("command")) == "env":
            count = next((i for i, one in enumerate(arguments) if "=" not in one), len(arguments))
            pairs = dict(one.split("=", 1) for one in arguments[:count])
            entry["env"] = as_object(entry.get("env")) | pairs
            entry |= {"command": "".join(arguments[count : count + 1])}
            entry["args"] = arguments[count + 1 :]
        found.add(Kind.SERVER, name, **entry)
