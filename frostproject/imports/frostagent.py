"""FrostAgent's ``.env`` and what it remembers. Pure."""

from typing import Any

from django.utils.translation import gettext as _

from agent.domain.notes import TAG_COUNT, TAG_LIMIT, TEXT_LIMIT
from frostproject.configuration.env import parse_dotenv
from frostproject.imports.documents import load_json, load_text
from frostproject.imports.plan import Found, Kind, as_object, as_objects, as_text, as_texts

TAKEN = frozenset(
    {
        *("UPSTREAM_ENDPOINT", "UPSTREAM_API_KEY", "MODEL_NAME", "VISUAL_MODEL_NAME"),
        *("SYSTEM_PROMPT", "BOT_NAME", "BOT_ALIASES", "MAX_CONTEXT_MESSAGES"),
        *("GROUP_REPLY_ON_MENTION", "ENABLE_AT_IN_GROUP_MSG", "ENABLE_REPLY_IN_GROUP_MSG"),
    }
)
SWITCHES = {"mention": "ENABLE_AT_IN_GROUP_MSG", "quote": "ENABLE_REPLY_IN_GROUP_MSG"}
#: FrostAgent heeds no smaller number of messages.
FEWEST_MESSAGES = 4


def read_frostagent(files: dict[str, bytes]) -> Found:
    """What is in ``.env``, ``brain.json`` and ``group_summaries.json``."""
    found = Found()
    if data := files.get(".env"):
        read_environment(load_text(data, ".env"), ".env", found)
    if data := files.get("brain.json"):
        read_memory(as_object(load_json(data, "brain.json")), found)
    if data := files.get("group_summaries.json"):
        read_summaries(as_object(load_json(data, "group_summaries.json")), found)
    if "memory_catalog.json" in files:
        found.leave("memory_catalog.json", _("it follows from the notes"))
    if "dialogue.yml" in files:
        found.leave("dialogue.yml", _("write them as example dialogues on the persona's page"))
    return found


def read_environment(text: str, file: str, found: Found) -> None:
    """Endpoint, persona and manners that the variables describe."""
    given = parse_dotenv(text)
    url, key = given.get("UPSTREAM_ENDPOINT", ""), as_texts(given.get("UPSTREAM_API_KEY"))
    model, seeing = given.get("MODEL_NAME", ""), given.get("VISUAL_MODEL_NAME", "")
    shared: dict[str, Any] = {"base_url": url, "keys": key, "enabled": True}
    if url and model:
        sees = {"can_see": True} if seeing == model else {}
        found.add(Kind.ENDPOINT, f"FrostAgent {model}", model=model, **shared, **sees)
    if url and seeing and seeing != model:
        own = {"can_see": True, "can_chat": False, "can_tools": False}
        found.add(Kind.ENDPOINT, f"FrostAgent {seeing}", model=seeing, **shared, **own)
    if prompt := given.get("SYSTEM_PROMPT", "").strip():
        most = given.get("MAX_CONTEXT_MESSAGES", "")
        heeded = most.isdecimal() and int(most[:9]) >= FEWEST_MESSAGES
        limit: dict[str, Any] = {"context_messages": int(most[:9])} if heeded else {}
        found.add(Kind.PERSONA, given.get("BOT_NAME") or file, prompt=prompt, **limit)
    names = [given.get("BOT_NAME", ""), *given.get("BOT_ALIASES", "").split(",")]
    values: dict[str, Any] = {"wake_names": "\n".join(as_texts(names))}
    values |= {ours: True for ours, theirs in SWITCHES.items() if given.get(theirs) == "true"}
    values |= {"groups": False} if given.get("GROUP_REPLY_ON_MENTION") == "false" else {}
    if any(value != "" for value in values.values()):
        found.add(Kind.MANNERS, "FrostAgent", **values)
    if rest := sorted(name for name, value in given.items() if value and name not in TAKEN):
        found.leave(", ".join(rest), _("settings that belong in .env here, or have no counterpart"))


def read_memory(document: dict[str, Any], found: Found) -> None:
    """Each entry as a note: about a person for that person alone, about a group for the group."""
    is_shared = False
    for entry in as_objects(document.get("entries")):
        owner = as_text(entry.get("owner"))
        is_shared |= entry.get("visibility") == "public" and not owner.startswith("group:")
        tags = [tag[:TAG_LIMIT] for tag in as_texts(entry.get("tags", []))][:TAG_COUNT]
        _add_note(owner, as_text(entry.get("content")), tags, found)
    if is_shared:
        found.leave("visibility: public", _("notes about a person are for that person alone here"))
    if document.get("merge_archives"):
        found.leave("merge_archives", _("notes that others have replaced"))


def read_summaries(document: dict[str, Any], found: Found) -> None:
    """The summary of each group as a note of that group."""
    for entry in as_objects(document.get("summaries")):
        owner = as_text(entry.get("session_id")).removeprefix("onebot:").removeprefix("qq:")
        if not owner.startswith("group:"):
            found.leave(owner, _("no group and no person of QQ"))
            continue
        _add_note(owner, as_text(entry.get("summary")), ["summary"], found)


def _add_note(owner: str, text: str, tags: list[str], found: Found) -> None:
    group = owner.removeprefix("group:")
    is_person = group == owner
    if not (group and text) or ":" in group:
        found.leave(owner or "-", _("no group and no person of QQ"))
        return
    for start in range(0, len(text), TEXT_LIMIT):
        values = {"text": text[start : start + TEXT_LIMIT], "tags": tags}
        values |= {"person": group if is_person else "", "group": "" if is_person else group}
        found.add(Kind.NOTE, owner, by_account=True, **values)
