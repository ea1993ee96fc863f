"""The tools that set, list, change and cancel reminders of a chat."""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from django.utils import translation
from pydantic import Field

from agent.domain.reminders import MOST_MENTIONED, MOST_RULE, MOST_TEXT
from agent.record.record import Record
from agent.run.services import get_sender, get_services
from tools.contract import (
    RecordedCall,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.functions.function_tool import tool
from tools.registry.catalogue import DefaultConfig

if TYPE_CHECKING:
    from agent.record.reminders.book import Asker

T = TypeVar("T")
DEFERRED = DefaultConfig(visibility="deferred", calls_per_minute_person=20)
WHEN = (
    "何时：本会话时区的 ISO 8601 日期时间（2026-01-31T08:00）、从现在起的 ISO 8601 时长（PT10M），"
    "或用户的原话（明晚八点半、每周一9点）"
)
REPEAT = "重复：RFC 5545 规则，如 FREQ=WEEKLY;BYDAY=MO；空字符串为不重复"
NOT_HERE = "本会话不能设置提醒：没有人问时，这里什么都不会说。"
NOTHING = "本会话没有等待中的提醒。"
_Number = Annotated[int, "提醒的编号", Field(ge=1, le=2**53)]
_When = Annotated[str, WHEN, Field(max_length=MOST_TEXT)]
_Repeat = Annotated[str | None, REPEAT, Field(max_length=MOST_RULE)]


async def _submit(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    work: "Callable[[ModuleType, Asker], T]",
) -> T:
    """What ``work`` says in the database thread, in Chinese; what it refuses is a failure."""
    from agent.record.reminders import book

    sender = get_sender(context)
    if sender.chat.platform != "onebot":
        raise ToolFailed(NOT_HERE)
    record = sender.journal.record
    zone = record.live.current.manners.find(sender.chat).zone
    persona = get_services(context).persona

    def carry_out() -> T:
        asker = book.asker_of_call(
            sender.session_pk,
            invocation.call_pk,
            persona.language if persona else "",
            person=context.user_id,
            is_owner=context.is_owner,
            zone=zone,
        )
        with translation.override("zh-hans"):
            return work(book, asker)

    try:
        return await record.submit(carry_out, claim=sender.journal.claim)
    except book.ReminderRefused as error:
        raise ToolFailed(str(error)) from error


async def _take_back(
    context: ToolExecutionContext, work: Callable[[ModuleType, int, Record], object]
) -> str:
    """Have ``work`` done in the database thread, with the key of the chat; what it refuses is a
    failure, in the language that is active."""
    from agent.record.reminders import book

    sender, language = get_sender(context), translation.get_language()
    record = sender.journal.record

    def carry_out() -> None:
        with translation.override(language):
            work(book, sender.session_pk, record)

    try:
        await record.submit(carry_out)
    except book.ReminderRefused as error:
        raise ToolFailed(str(error)) from error
    return ""


async def cancel_again(call: RecordedCall, context: ToolExecutionContext) -> str:
    """Take back a reminder that ``set_reminder`` has set and that is still to be said."""
    noted = call.structured_content if isinstance(call.structured_content, dict) else {}
    number = int(noted.get("reminder") or 0)

    def work(book: ModuleType, session_pk: int, record: Record) -> None:
        book.cancel(book.find_open(book.Asker(session_pk, context.user_id), number))

    return await _take_back(context, work)


async def set_back(call: RecordedCall, context: ToolExecutionContext) -> str:
    """Have a reminder be as it was before it was changed or cancelled."""
    account = str(context.metadata["account"])

    def work(book: ModuleType, session_pk: int, record: Record) -> None:
        book.take_back(session_pk, call.call_pk, record.live.find_account(account).owners)

    return await _take_back(context, work)


@tool(
    name="set_reminder",
    description="设置提醒或定时任务：到时间后程序自己在本会话发送，不需要你再做任何事。",
    undo=cancel_again,
    lenient=True,
    needs_chat=True,
    default_config=DEFERRED,
)
async def set_reminder(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    text: Annotated[str, "要提醒的内容，或要完成的任务", Field(min_length=1, max_length=MOST_TEXT)],
    when: _When,
    repeat: _Repeat = None,
    kind: Annotated[
        Literal["text", "task"],
        "text 原样发送这段文字（默认）；task 到时由模型完成，例如查天气并告诉大家",
    ] = "text",
    mention: Annotated[
        list[str],
        "要 @ 的人的 ID；all 为所有人，只有主人可以",
        Field(max_length=MOST_MENTIONED),
    ] = [],  # noqa: B006 - pydantic copies it
) -> ToolExecutionResult:
    def work(book: ModuleType, asker: "Asker") -> tuple[int, str]:
        wish = book.Wish(text, book.read_words(when, asker.zone), repeat, kind, mention)
        row = book.set_reminder(asker, wish)
        return row.pk, f"已设置：{book.describe(row, asker.zone)}"

    pk, said = await _submit(context, invocation, work)
    return ToolExecutionResult(
        "set_reminder", success=True, content=said, structured_content={"reminder": pk}
    )


@tool(
    name="list_reminders",
    description="列出当前发言者在本会话的提醒及其编号；主人可以看到本会话所有人的。",
    lenient=True,
    needs_chat=True,
    default_config=DEFERRED,
    traits=("repeatable",),
)
async def list_reminders(context: ToolExecutionContext, invocation: ToolInvocation) -> str:
    def work(book: ModuleType, asker: "Asker") -> str:
        found = book.list_reminders(asker)
        lines = (book.describe(row, asker.zone, shows_person=asker.is_owner) for row in found)
        return "\n".join(lines) or NOTHING

    return await _submit(context, invocation, work)


@tool(
    name="change_reminder",
    undo=set_back,
    description="按编号修改一个提醒，只写要改的部分。",
    lenient=True,
    needs_chat=True,
    default_config=DEFERRED,
)
async def change_reminder(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    number: _Number,
    text: Annotated[str, "新的内容", Field(max_length=MOST_TEXT)] = "",
    when: _When = "",
    repeat: _Repeat = None,
) -> ToolExecutionResult:
    def work(book: ModuleType, asker: "Asker") -> tuple[str, object]:
        before = book.note_down(book.find_open(asker, number))
        row = book.change_reminder(asker, number, text=text, when=when, repeat=repeat)
        return f"已修改：{book.describe(row, asker.zone)}", book.keep_change(row, before)

    said, kept = await _submit(context, invocation, work)
    return ToolExecutionResult(
        "change_reminder", success=True, content=said, structured_content=kept
    )


@tool(
    name="cancel_reminder",
    undo=set_back,
    description="按编号取消一个提醒。",
    lenient=True,
    needs_chat=True,
    default_config=DEFERRED,
)
async def cancel_reminder(
    context: ToolExecutionContext, invocation: ToolInvocation, number: _Number
) -> ToolExecutionResult:
    def work(book: ModuleType, asker: "Asker") -> tuple[str, object]:
        row = book.find_open(asker, number)
        before = book.note_down(row)
        was_said = book.cancel(row).state == row.State.DONE
        told = "刚刚已经发送" if was_said else "已取消"
        return f"{told}：{book.describe(row, asker.zone)}", book.keep_change(row, before)

    said, kept = await _submit(context, invocation, work)
    return ToolExecutionResult(
        "cancel_reminder", success=True, content=said, structured_content=kept
    )


TOOLS = (set_reminder, list_reminders, change_reminder, cancel_reminder)
