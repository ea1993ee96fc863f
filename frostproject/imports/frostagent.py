"""FrostAgent's ``.env`` and what it remembers. Pure."""

from typing import Any

from django.utils.translation import gettext as _

from agent.domain.notes import TAG_COUNT, TAG_LIMIT, TEXT_LIMIT
from frostproject.configuration.env import parse_dotenv
from frostproject.imports.documents import as_objects, as_text, as_texts
from frostproject.imports.plan import Found, Kind

TAKEN = frozenset(
    {
        *("UPSTREAM_ENDPOINT", "UPSTREAM_API_KEY", "MODEL_NAME", "VISUAL_MODEL_NAME"),
        *("SYSTEM_PROMPT", "BOT_NAME", "BOT_ALIASES", "MAX_CONTEXT_MESSAGES"),
        *("GROUP_REPLY_ON_MENTION", "ENABLE_AT_IN_GROUP_MSG", "ENABLE_REPLY_IN_GROUP_MSG"),
    }
)
#: Fields of manners by the variable that sets them, and to what.
SWITCHES = {
    ("ENABLE_AT_IN_GROUP_MSG", "true"): ("mention", True),
    ("ENABLE_REPLY_IN_GROUP_MSG", "true"): ("quote", True),
    ("GROUP_REPLY_ON_MENTION", "false"): ("groups", False),
}
#: FrostAgent heeds no smaller number of messages.
FEWEST_MESSAGES = 4


def read_environment(text: str, file: str, found: Found) -> None:
    """Endpoint, persona and manners that the variables describe."""
    given = parse_dotenv(text)
    url, keys = given.get("UPSTREAM_ENDPOINT"), as_texts(given.get("UPSTREAM_API_KEY"))
    model, seeing = given.get("MODEL_NAME", ""), given.get("VISUAL_MODEL_NAME", "")
    alone = {"can_see": True, "can_chat": False, "can_tools": False}
    sees = {"can_see": True} if seeing == model else {}
    for name, own in ((model, sees), ("" if sees else seeing, alone)):
        if url and name:
            said: dict[str, Any] = {"base_url": url, "model": name, "keys": keys, "enabled": True}
            found.add(Kind.ENDPOINT, f"FrostAgent {name}", **said, **own)
    if prompt := given.get("SYSTEM_PROMPT", "").strip():
        most = given.get("MAX_CONTEXT_MESSAGES", "")
        heeded = most.isdecimal() and int(most[:9]) >= FEWEST_MESSAGES
        limit: dict[str, Any] = {"context_messages": int(most[:9])} if heeded else {}
        found.add(Kind.PERSONA, given.get("BOT_NAME") or file, prompt=prompt, **limit)
    values: dict[str, Any] = dict(SWITCHES[one] for one in SWITCHES.keys() & given.items())
    if names := as_texts([given.get("BOT_NAME"), *given.get("BOT_ALIASES", "").split(",")]):
        values["wake_names"] = "\n".join(names)
    if values:
        found.add(Kind.MANNERS, "FrostAgent", **values)
    if rest := sorted(name for name, value in given.items() if value and name not in TAKEN):
        found.leave(", ".join(rest), _("settings that belong in .env here, or have no counterpart"))


def read_memory(document: dict[str, Any], found: Found) -> None:
    """Each entry as a note: about a person for that person alone, about a group for the group."""
    entries = as_objects(document.get("entries"))
    for entry in entries:
        tags = [tag[:TAG_LIMIT] for tag in as_texts(entry.get("tags", []))][:TAG_COUNT]
        _add_note(as_text(entry.get("owner")), as_text(entry.get("content")), tags, found)
    public = [one for one in entries if one.get("visibility") == "public"]
    if any(not as_text(one.get("owner")).startswith("group:") for one in public):
        found.leave("visibility: public", _("notes about a person are for that person alone here"))
    if document.get("merge_archives"):
        found.leave("merge_archives", _("notes that others have replaced"))


def read_summaries(document: dict[str, Any], found: Found) -> None:
    """The summary of each group as a note of that group."""
    for entry in as_objects(document.get("summaries")):
        owner = as_text(entry.get("session_id")).removeprefix("onebot:").removeprefix("qq:")
        is_group = owner.startswith("group:")
        text = as_text(entry.get("summary")) if is_group else ""
        _add_note(owner, text, ["summary"], found)


def _add_note(owner: str, text: str, tags: list[str], found: Found) -> None:
    group = owner.removeprefix("group:")
    about = {"person": "", "group": group} if group != owner else {"person": owner, "group": ""}
    if not (group and text) or ":" in group:
        found.leave(owner or "-", _("no group and no person of QQ"))
        text = ""
    for start in range(0, len(text), TEXT_LIMIT):
        part = text[start : start + TEXT_LIMIT]
        found.add(Kind.NOTE, owner, by_account=True, text=part, tags=tags, **about)
