"""LangBot's database. Pure."""

from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.databases import Tables
from frostproject.imports.documents import as_object, as_objects, as_text, as_texts, load_column
from frostproject.imports.plan import Found, Kind

#: Ends of the names of requesters that speak OpenAI's chat completions, or do beside their own.
COMPATIBLE = ("chat-completions", "ollama-chat")
READ_OF_TRIGGER = ("group-respond-rules", "access-control")
READ_OF_RULES = ("random", "at", "regexp", "prefix")
OWN_ADDRESSES = {"openai-chat-completions": "https://api.openai.com/v1"}


def read_langbot(tables: Tables, found: Found) -> None:
    """Providers with their models, pipelines as personas and manners, and MCP servers."""
    names = _read_models(tables, found)
    used = _find_used(tables)
    for row in tables.get("legacy_pipelines", []):
        _read_pipeline(row, names, found, is_used=row.get("uuid") == used)
    for row in tables.get("mcp_servers", []):
        entry = as_object(load_column(row, "extra_args")) | {"enabled": bool(row.get("enable"))}
        entry |= {"type": "sse"} if row.get("mode") == "sse" else {}
        found.add(Kind.SERVER, as_text(row.get("name")), **entry)
    for row in tables.get("bots", []):
        found.leave(
            as_text(row.get("name")),
            _("enter the address of this server in the client (%s there)"),
            (as_text(row.get("adapter")) or "-"),
        )
    for table in ("embedding_models", "plugin_settings", "knowledge_bases"):
        if tables.get(table):
            found.leave(table, _("settings that have no counterpart here"))


def _find_used(tables: Tables) -> object:
    """The pipeline whose rules count: that of the first QQ bot that is on, else the default one."""
    bots = [one for one in tables.get("bots", []) if one.get("enable")]
    bots.sort(key=lambda one: one.get("adapter") != "aiocqhttp")
    usual = [one.get("uuid") for one in tables.get("legacy_pipelines", []) if one.get("is_default")]
    used = [bot["use_pipeline_uuid"] for bot in bots if bot.get("use_pipeline_uuid")]
    return next(iter([*used, *usual]), None)


def _read_models(tables: Tables, found: Found) -> dict[str, str]:
    """The names that the models have here, by what pipelines call them."""
    providers = {one.get("uuid"): one for one in tables.get("model_providers", [])}
    names: dict[str, str] = {}
    for row in tables.get("llm_models", []):
        # Before there were providers, a model's row had all of it.
        older = {"base_url": as_object(load_column(row, "requester_config")).get("base_url")}
        provider = providers.get(row.get("provider_uuid"), older | row | {"name": ""})
        model, requester = as_text(row.get("name")), as_text(provider.get("requester"))
        if not requester.endswith(COMPATIBLE):
            found.leave(model, _("no chat model of OpenAI's form (%s)") % (requester or "-"))
            continue
        name = model if model not in names.values() else f"{provider['name'] or ''} {model}".strip()
        names[as_text(row.get("uuid"))] = name
        abilities = load_column(row, "abilities")
        found.add(
            Kind.ENDPOINT,
            name,
            base_url=as_text(provider.get("base_url")) or OWN_ADDRESSES.get(requester, ""),
            model=model,
            keys=as_texts(load_column(provider, "api_keys")),
            enabled=True,
            extra_body=as_object(load_column(row, "extra_args")),
            **({"can_see": "vision" in abilities} if isinstance(abilities, list) else {}),
        )
    return names


def _read_pipeline(
    row: dict[str, Any], names: dict[str, str], found: Found, *, is_used: bool
) -> None:
    name, config = as_text(row.get("name")), as_object(load_column(row, "config"))
    runner = as_text(as_object(config, "ai", "runner").get("runner"))
    if runner == "local-agent":
        _read_agent(name, as_object(config, "ai", "local-agent"), names, found)
    else:
        found.leave(name, _("it is answered by another program (%s)") % (runner or "-"))
    if not is_used:
        return found.leave(f"{name}: trigger", _("no bot uses this pipeline"))
    _read_rules(name, as_object(config, "trigger", "group-respond-rules"), found)
    _read_access(name, as_object(config, "trigger", "access-control"), found)
    found.leave_rest(f"{name}: trigger", as_object(config, "trigger"), READ_OF_TRIGGER)
    for part in ("safety", "output"):
        if config.get(part):
            found.leave(
                f"{name}: {part}", _("there is no such setting in the same form; see “Manners”")
            )
    return None


def _read_agent(name: str, agent: dict[str, Any], names: dict[str, str], found: Found) -> None:
    said = as_objects(agent.get("prompt"))
    of_system = [as_text(one.get("content")) for one in said if one.get("role") == "system"]
    chosen = as_object(agent.get("model"))
    wanted = as_texts(chosen.get("primary") or agent.get("model"))
    wanted += as_texts(chosen.get("fallbacks", []))
    found.add(
        Kind.PERSONA,
        name,
        prompt="\n\n".join(filter(None, of_system)),
        endpoints=[names[one] for one in wanted if one in names],
    )
    found.leave_rest(f"{name}: ai", agent, ("prompt", "model"))
    if len(of_system) < len(said):
        found.leave(f"{name}: prompt", _("only what its system messages say is taken over"))


def _read_rules(name: str, rules: dict[str, Any], found: Found) -> None:
    chance, at = rules.get("random"), rules.get("at")
    pattern = "|".join(f"(?:{one})" for one in as_texts(rules.get("regexp", [])))
    values: dict[str, Any] = {
        "wake_prefixes": "\n".join(as_texts(rules.get("prefix", []))),
        "wake_pattern": pattern,
        "wake_chance": min(chance * 100, 100)
        if isinstance(chance, int | float) and chance > 0
        else None,
        "wake_mention": at if isinstance(at, bool) else None,
    }
    said: dict[str, Any] = {
        field: value for field, value in values.items() if value not in ("", None)
    }
    found.add(Kind.MANNERS, f"LangBot {name}", **said)
    found.leave_rest(f"{name}: trigger", rules, READ_OF_RULES)


def _read_access(name: str, access: dict[str, Any], found: Found) -> None:
    mode = as_text(access.get("mode"))
    listed: dict[str, list[str]] = {"group": [], "person": []}
    for entry in as_texts(access.get(mode, [])):
        kind, _line, number = entry.partition("_")
        if not number or "*" in entry or kind not in listed:
            found.leave(f"{name}: {entry}", _("no group and no person of QQ"))
        else:
            listed[kind].append(number)
    groups = [f"group:{one}" for one in listed["group"]]
    chats = [*groups, *(f"private:{one}" for one in listed["person"])]
    if mode == "whitelist" and chats:
        return found.allow_chats("LangBot", chats)
    if groups and mode != "whitelist":
        own = {"answered": "nobody", "chats": "\n".join(groups)}
        found.add(Kind.MANNERS, "LangBot: denied chats", by_account=True, **own)
    if listed["person"] and mode != "whitelist":
        people = "\n".join(listed["person"])
        found.add(Kind.MANNERS, "LangBot: denied people", by_account=True, denied_people=people)
    return None
