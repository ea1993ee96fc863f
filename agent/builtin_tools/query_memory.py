"""``query_memory``: notes looked up by words, by time, or by both."""

from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

from django.utils import timezone

from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.memory import get_notebook, get_viewer, memory_result
from agent.domain.notes import NoteViewer
from agent.memory.note_service import NoteService
from agent.memory.notes_store import NoteSearch
from agent.memory.prompt_block import describe_note, quote_notes
from agent.memory.relevance import RecalledNote
from tools.contract import JsonSchema, ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import InvalidArguments
from tools.text.fences import clean_name

NAME = "query_memory"
MODES = {"search": "按内容", "time": "按时间", "hybrid": "两者都用"}
LIMIT, HIGHEST_LIMIT = 5, 20
#: Years within which a time can be meant, so that no zone's offset leads out of the calendar.
YEARS = range(1970, 9999)
NOTHING_ASKED = (
    "query 和时间（time_start 或 time_end）至少要给出一个；查询一个人请用 query_person_profile"
)
NOTHING_FOUND = "没有找到相关的记忆。"

PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "maxLength": 1_000, "description": "要找的内容"},
        "limit": {
            "type": "integer",
            "description": f"最多返回几条，1 到 {HIGHEST_LIMIT}，默认 {LIMIT}",
        },
        "mode": {
            "type": "string",
            "description": "search 按内容，time 按时间，hybrid 两者都用；默认按给出的条件",
        },
        "person_name": {
            "type": "string",
            "maxLength": 200,
            "description": "只找关于这个人或他说过的，可以是名字或 ID",
        },
        "time_start": {
            "type": "string",
            "description": "从何时起，如 2026-11-05 或 2026-11-05 18:30",
        },
        "time_end": {"type": "string", "description": "到何时止，格式相同"},
    },
}


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """The arguments of a call as they are meant. Made by :func:`parse_memory_query`."""

    words: str
    since: datetime | None
    until: datetime | None
    person: str
    limit: int


async def query_memory(
    invocation: ToolInvocation, context: ToolExecutionContext
) -> ToolExecutionResult:
    """Look among the notes that this chat may see; where a person has none, among everybody's, and
    say so."""
    ask, here, book = (
        parse_memory_query(invocation.arguments),
        get_viewer(context),
        get_notebook(context),
    )
    search = NoteSearch(here, ask.words, since=ask.since, until=ask.until, limit=ask.limit)
    if not ask.person:
        return _answer(await book.find(search))
    found = await _of_person(book, here, search, ask.person)
    if found:
        return _answer(found)
    remark = f"没有找到关于“{clean_name(ask.person)}”的记忆，以下是不限人物的结果。\n"
    others = await book.find(search)
    return _answer(others, remark) if others else _answer([])


async def _of_person(
    book: NoteService, here: NoteViewer, search: NoteSearch, person: str
) -> list[RecalledNote]:
    people = await book.people_named(here, person) or (person,)
    return await book.find(replace(search, people=people))


def parse_memory_query(arguments: dict[str, Any]) -> MemoryQuery:
    """What a call asks for. Raises :class:`InvalidArguments` for what cannot be meant."""
    words = (arguments.get("query") or "").strip()
    since = parse_query_time(arguments.get("time_start") or "", "time_start", time.min)
    until = parse_query_time(arguments.get("time_end") or "", "time_end", time.max)
    mode = (arguments.get("mode") or "").strip().lower()
    if mode not in ("", *MODES):
        options = "、".join(f"{name}（{words}）" for name, words in MODES.items())
        raise InvalidArguments([f"mode 不支持: {clean_name(mode)}，可用的有 {options}"])
    words, since, until = (
        "" if mode == "time" else words,
        *((None, None) if mode == "search" else (since, until)),
    )
    if not (words or since or until):
        raise InvalidArguments([NOTHING_ASKED])
    if since and until and since > until:
        raise InvalidArguments(["time_start 不能晚于 time_end"])
    limit = min(max(arguments.get("limit") or LIMIT, 1), HIGHEST_LIMIT)
    return MemoryQuery(words, since, until, (arguments.get("person_name") or "").strip(), limit)


def parse_query_time(text: str, name: str, of_day: time) -> datetime | None:
    """The time that ``text`` means, a day alone being ``of_day`` of it; None for "". Raises
    InvalidArguments."""
    text = text.strip()
    if not text:
        return None
    try:
        at = (
            datetime.combine(date.fromisoformat(text), of_day)
            if len(text) <= 10
            else datetime.fromisoformat(text)
        )
    except ValueError:
        at = datetime.min  # noqa: DTZ901 - out of range, as a text that is no time
    if at.year not in YEARS:
        raise InvalidArguments(
            [f"{name} 不是可以识别的时间，请写成 2026-11-05 或 2026-11-05 18:30"]
        )
    return timezone.make_aware(at) if timezone.is_naive(at) else at


def _answer(notes: list[RecalledNote], remark: str = "") -> ToolExecutionResult:
    if not notes:
        return memory_result(NAME, NOTHING_FOUND, [])
    return memory_result(NAME, remark + quote_notes(notes), [describe_note(note) for note in notes])


TOOL = BuiltinTool(
    name=NAME,
    description="查询以前记下的内容：按内容、按时间，或两者都用；可以只查某个人的。只会找到当前会话可以看到的记忆。",
    parameters=PARAMETERS,
    handler=query_memory,
    needs_chat=True,
)
