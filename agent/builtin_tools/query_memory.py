"""``query_memory``: finds notes by words, by time, or by both."""

from dataclasses import replace
from datetime import date, datetime, time
from typing import Annotated

from django.utils import timezone
from pydantic import Field

from agent.builtin_tools.remember import get_viewer, memory_result
from agent.memory.notes_store import NoteSearch
from agent.memory.prompt_block import describe_note, quote_notes
from agent.memory.relevance import RecalledNote
from agent.run.services import get_notes
from tools.contract import ToolExecutionContext, ToolExecutionResult
from tools.errors import InvalidArguments
from tools.functions.function_tool import tool
from tools.text.fences import clean_name

MODES = {"search": "按内容", "time": "按时间", "hybrid": "两者都用"}
LIMIT, HIGHEST_LIMIT = 5, 20
#: Years within which a time can be meant, so that no zone's offset leads out of the calendar.
YEARS = range(1970, 9999)
NOTHING_ASKED = (
    "query 和时间（time_start 或 time_end）至少要给出一个；查询一个人请用 query_person_profile"
)
NOTHING_FOUND = "没有找到相关的记忆。"


@tool(
    name="query_memory",
    description="查询以前记下的内容：按内容、按时间，或两者都用；可以只查某个人的。"
    "只会找到当前会话可以看到的记忆。",
    lenient=True,
    needs_chat=True,
)
async def query_memory(
    context: ToolExecutionContext,
    query: Annotated[str, "要找的内容", Field(max_length=1_000)] = "",
    limit: Annotated[int, f"最多返回几条，1 到 {HIGHEST_LIMIT}，默认 {LIMIT}"] = LIMIT,
    mode: Annotated[str, "search 按内容，time 按时间，hybrid 两者都用；默认按给出的条件"] = "",
    person_name: Annotated[
        str, "只找关于这个人或他说过的，可以是名字或 ID", Field(max_length=200)
    ] = "",
    time_start: Annotated[str, "从何时起，如 2026-11-05 或 2026-11-05 18:30"] = "",
    time_end: Annotated[str, "到何时止，格式相同"] = "",
) -> ToolExecutionResult:
    """Search the notes that this chat may see; if a person has none, search those of all people,
    and say so."""
    words, since, until = parse_memory_query(query.strip(), mode, time_start, time_end)
    limit = min(max(limit or LIMIT, 1), HIGHEST_LIMIT)
    viewer, notes, person = get_viewer(context), get_notes(context), person_name.strip()
    search = NoteSearch(viewer, words, since=since, until=until, limit=limit)
    if not person:
        return _answer(await notes.find(search))
    people = await notes.people_named(viewer, person) or (person,)
    if found := await notes.find(replace(search, people=people)):
        return _answer(found)
    remark = f"没有找到关于“{clean_name(person)}”的记忆，以下是不限人物的结果。\n"
    return _answer(await notes.find(search), remark)


def parse_memory_query(
    words: str, mode: str, time_start: str, time_end: str
) -> tuple[str, datetime | None, datetime | None]:
    """The words to look for, and from when to when. Raises :class:`InvalidArguments` for what
    cannot be meant."""
    since = parse_query_time(time_start, "time_start", time.min)
    until = parse_query_time(time_end, "time_end", time.max)
    mode = mode.strip().lower()
    if mode not in ("", *MODES):
        options = "、".join(f"{name}（{meaning}）" for name, meaning in MODES.items())
        raise InvalidArguments([f"mode 不支持: {clean_name(mode)}，可用的有 {options}"])
    if mode == "time":
        words = ""
    if mode == "search":
        since = until = None
    if not (words or since or until):
        raise InvalidArguments([NOTHING_ASKED])
    if since and until and since > until:
        raise InvalidArguments(["time_start 不能晚于 time_end"])
    return words, since, until


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
    text = remark + quote_notes(notes) if notes else NOTHING_FOUND
    return memory_result("query_memory", text, [describe_note(note) for note in notes])
