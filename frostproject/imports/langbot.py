"""LangBot's database. Pure."""

from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.astrbot import allow_chats
from frostproject.imports.databases import Tables
from frostproject.imports.documents import load_column
from frostproject.imports.plan import Found, Kind, as_object, as_objects, as_text, as_texts

#: Ends of the names of requesters that speak OpenAI's chat completions, or do beside their own.
COMPATIBLE = ("chat-completions", "ollama-chat")
OWN_ADDRESSES = {"openai-chat-completions": "https://api.openai.com/v1"}


def read_langbot(tables: Tables) -> Found:
    """Providers with their models, pipelines as personas and manners, and MCP servers."""
    found = Found()
    names = _read_models(tables, found)
    rows = tables.get("legacy_pipelines", [])
    used = _find_used(tables, rows)
    for row in rows:
        _read_pipeline(row, names, found, is_used=row.get("uuid") == used)
    for row in tables.get("mcp_servers", []):
        entry = as_object(load_column(row.get("extra_args"), "mcp_servers"))
        is_sse = row.get("mode") == "sse"
        entry |= {"enabled": bool(row.get("enable"))} | ({"type": "sse"} if is_sse else {})
        found.add(Kind.SERVER, as_text(row.get("name")), **entry)
    for row in tables.get("bots", []):
        words = _("enter the address of this server in the client (%s there)")
        found.leave(as_text(row.get("name")), words % (as_text(row.get("adapter")) or "-"))
    for table in ("embedding_models", "plugin_settings", "knowledge_bases"):
        if tables.get(table):
            found.leave(table, _("settings that have no counterpart here"))
    return found


def _find_used(tables: Tables, rows: list[dict[str, Any]]) -> object:
    """The pipeline whose rules count: that of the first QQ bot that is on, else the default one."""
    bots = [one for one in tables.get("bots", []) if one.get("enable")]
    bots.sort(key=lambda one: one.get("adapter") != "aiocqhttp")
    usual = next((one.get("uuid") for one in rows if one.get("is_default")), None)
    return next((bot["use_pipeline_uuid"] for bot in bots if bot.get("use_pipeline_uuid")), usual)


def _read_models(tables: Tables, found: Found) -> dict[str, str]:
    """The names that the models have here, by what pipelines call them."""
    providers = {one.get("uuid"): one for one in tables.get("model_providers", [])}
    names: dict[str, str] = {}
    for row in tables.get("llm_models", []):
        model = as_text(row.get("name"))
        provider = providers.get(row.get("provider_uuid"), {})
        older = as_object(load_column(row.get("requester_config"), model))
        requester = as_text(provider.get("requester") or row.get("requester"))
        if not requester.endswith(COMPATIBLE):
            found.leave(model, _("no chat model of OpenAI's form (%s)") % (requester or "-"))
            continue
        name = model if model not in names.values() else f"{provider.get('name') or ''} {model}"
        names[as_text(row.get("uuid"))] = name.strip()
        abilities = load_column(row.get("abilities"), model)
        url = as_text(provider.get("base_url")) or as_text(older.get("base_url"))
        found.add(
            Kind.ENDPOINT,
            name.strip(),
            base_url=url or OWN_ADDRESSES.get(requester, ""),
            model=model,
            keys=as_texts(load_column(provider.get("api_keys") or row.get("api_keys"), model)),
            enabled=True,
            extra_body=as_object(load_column(row.get("extra_args"), model)),
            **({"can_see": "vision" in abilities} if isinstance(abilities, list) else {}),
        )
    return names


def _read_pipeline(
    row: dict[str, Any], names: dict[str, str], found: Found, *, is_used: bool
) -> None:
    name = as_text(row.get("name"))
    config = as_object(load_column(row.get("config"), name))
    ai = as_object(config.get("ai"))
    runner = as_text(as_object(ai.get("runner")).get("runner"))
    if runner == "local-agent":
        _read_agent(name, as_object(ai.get("local-agent")), names, found)
    else:
        found.leave(name, _("it is answered by another program (%s)") % (runner or "-"))
    trigger = as_object(config.get("trigger"))
    if not is_used:
        found.leave(f"{name}: trigger", _("no bot uses this pipeline"))
        return
    _read_rules(name, as_object(trigger.get("group-respond-rules")), found)
    _read_access(name, as_object(trigger.get("access-control")), found)
    for part in ("safety", "output"):
        if config.get(part):
            words = _("there is no such setting in the same form; see “Manners”")
            found.leave(f"{name}: {part}", words)


def _read_agent(name: str, agent: dict[str, Any], names: dict[str, str], found: Found) -> None:
    said = [
        (one.get("role"), as_text(one.get("content"))) for one in as_objects(agent.get("prompt"))
    ]
    model = agent.get("model")
    chosen = as_object(model)
    wanted = [as_text(chosen.get("primary") or model), *as_texts(chosen.get("fallbacks", []))]
    found.add(
        Kind.PERSONA,
        name,
        prompt="\n\n".join(text for role, text in said if role == "system" and text),
        endpoints=[names[one] for one in wanted if one in names],
    )
    if any(role != "system" for role, _text in said):
        found.leave(f"{name}: prompt", _("only what its system messages say is taken over"))


def _read_rules(name: str, rules: dict[str, Any], found: Found) -> None:
    values: dict[str, Any] = {"wake_prefixes": "\n".join(as_texts(rules.get("prefix", [])))}
    if patterns := as_texts(rules.get("regexp", [])):
        values["wake_pattern"] = "|".join(f"(?:{one})" for one in patterns)
    if isinstance(chance := rules.get("random"), int | float) and chance > 0:
        values["wake_chance"] = min(chance * 100, 100)
    if isinstance(rules.get("at"), bool):
        values["wake_mention"] = rules["at"]
    found.add(Kind.MANNERS, f"LangBot {name}", **values)


def _read_access(name: str, access: dict[str, Any], found: Found) -> None:
    mode = as_text(access.get("mode"))
    groups: list[str] = []
    people: list[str] = []
    for entry in as_texts(access.get(mode, [])):
        kind, _line, number = entry.partition("_")
        if not number or "*" in entry or kind not in ("group", "person"):
            found.leave(f"{name}: {entry}", _("no group and no person of QQ"))
        else:
            (groups if kind == "group" else people).append(number)
    chats = [f"group:{one}" for one in groups]
    if mode == "whitelist":
        allow_chats("LangBot", [*chats, *(f"private:{one}" for one in people)], found)
        return
    for own, values in (
        ("chats", {"answered": "nobody", "chats": "\n".join(chats)} if chats else {}),
        ("people", {"denied_people": "\n".join(people)} if people else {}),
    ):
        if values:
            found.add(Kind.MANNERS, f"LangBot: denied {own}", by_account=True, **values)
