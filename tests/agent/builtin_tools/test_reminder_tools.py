"""The tools by which a model sets, lists, changes and cancels reminders."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.builtin_tools import reminder_tools
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message, Reminder, Run, Step, ToolCall
from agent.record.record import Record
from agent.run.services import RunServices
from tests.agent.talk import GROUP, PRIVATE, accept, message
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)
MEMBER, OTHER, OWNER = "20001", "20002", "20009"


class Desk:
    """Chats on record, in which a model calls tools for people."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.registry = ToolRegistry()
        self.registry.register_provider(MaisakaBuiltinToolProvider(list(reminder_tools.TOOLS)))
        accept(message("hi", GROUP), message("hi", PRIVATE))
        self.calls = {reason: self._call_row(reason) for reason in ("mentioned", "reminder")}

    def _call_row(self, reason: str) -> int:
        session, now = ChatSession.objects.get(kind="group"), timezone.now()
        asked = Message.objects.create(
            session=session, direction="in", reason=reason, state="answered", created_at=now
        )
        run = Run.objects.create(session=session, message=asked, origin="chat", started_at=now)
        step = Step.objects.create(run=run, number=1, request=[], tools=[], created_at=now)
        return ToolCall.objects.create(
            run=run, step=step, call_id="c", tool_name="x", state="running", created_at=now
        ).pk

    async def call(
        self,
        tool: str,
        user: str = MEMBER,
        chat: ChatAddress = GROUP,
        reason: str = "mentioned",
        **arguments: Any,
    ) -> ToolExecutionResult:
        session = await ChatSession.objects.aget(kind=chat.kind)
        journal = SimpleNamespace(record=self.record, claim=None)
        sender = SimpleNamespace(chat=chat, session_pk=session.pk, journal=journal)
        context = ToolExecutionContext(
            session_id=chat.address,
            is_group_chat=chat.kind == "group",
            user_id=user,
            owners=frozenset({OWNER}),
            services=RunServices(sender=cast("Any", sender)),
        )
        invocation = ToolInvocation(tool, arguments, call_pk=self.calls[reason])
        return await self.registry.invoke(invocation, context)

    async def set(self, user: str = MEMBER, **arguments: Any) -> Reminder:
        usual = {"text": "喝水", "when": "PT1H"}
        result = await self.call("set_reminder", user, **usual | arguments)
        assert result.success, result.error_message
        return await Reminder.objects.alatest("pk")


@pytest.fixture
async def desk(record: Record) -> Desk:
    return await sync_to_async(Desk)(record)


def refused(result: ToolExecutionResult) -> str:
    """The one sentence of a call that changed nothing."""
    assert not result.success
    assert "\n" not in result.error_message
    return result.error_message


async def test_each_has_his_own_listed_and_an_owner_those_of_all(desk: Desk):
    assert "没有" in (await desk.call("list_reminders")).content
    mine, theirs = await desk.set(), await desk.set(OTHER, text="开会", when="PT2H")
    own = (await desk.call("list_reminders")).content
    assert own.startswith(f"#{mine.pk} ")
    assert "开会" not in own
    everybodys = (await desk.call("list_reminders", OWNER)).content.splitlines()
    assert [line.split()[0] for line in everybodys] == [f"#{mine.pk}", f"#{theirs.pk}"]
    assert everybodys[1].endswith(f"({OTHER})")
    assert "没有" in (await desk.call("list_reminders", OWNER, PRIVATE)).content


async def test_only_what_is_named_is_changed(desk: Desk):
    row = await desk.set(when="每天9点", mention=[OTHER])
    before = row.due_at
    assert (await desk.call("change_reminder", number=row.pk, text="吃药")).success
    await row.arefresh_from_db()
    assert (row.text, row.due_at, row.repeat) == ("吃药", before, "FREQ=DAILY")
    assert (await desk.call("change_reminder", number=row.pk, when="明天10点")).success
    await row.arefresh_from_db()
    assert (row.repeat, row.mention, row.text) == ("FREQ=DAILY", OTHER, "吃药")
    assert (row.due_at - before) % timedelta(days=1) == timedelta(hours=1)
    assert (await desk.call("change_reminder", number=row.pk, repeat="")).success
    await row.arefresh_from_db()
    assert (row.repeat, row.next_at) == ("", row.due_at)
    assert (await desk.call("change_reminder", number=row.pk, when="每周一9点")).success
    await row.arefresh_from_db()
    assert row.repeat == "FREQ=WEEKLY;BYDAY=MO"


@pytest.mark.parametrize("tool", ["change_reminder", "cancel_reminder"])
async def test_what_is_anothers_elsewhere_or_over_is_left_alone(desk: Desk, tool: str):
    row = await desk.set()
    changes = {"text": "x"} if tool == "change_reminder" else {}

    async def refusal(user: str = MEMBER, chat: ChatAddress = GROUP, pk: int = row.pk) -> str:
        return refused(await desk.call(tool, user, chat, number=pk, **changes))

    assert f"#{row.pk}" in await refusal(OTHER)
    assert f"#{row.pk}" in await refusal(MEMBER, PRIVATE)
    assert f"#{row.pk}" in await refusal(OWNER, PRIVATE)
    assert "#999" in await refusal(pk=999)
    await Reminder.objects.filter(pk=row.pk).aupdate(state="done")
    assert f"#{row.pk}" in await refusal(OWNER)
    await row.arefresh_from_db()
    assert (row.state, row.text) == ("done", "喝水")


async def test_ones_own_is_cancelled_and_an_owner_cancels_any(desk: Desk):
    for user in (MEMBER, OWNER):
        row = await desk.set()
        assert "已取消" in (await desk.call("cancel_reminder", user, number=row.pk)).content
        await row.arefresh_from_db()
        assert (row.state, row.next_at) == ("cancelled", None)


UNSURE = (
    *({"when": when} for when in ("8am or 9am", "每天9点到17点每小时", "10m before lunch", "")),
    *({"when": when} for when in ("周五", "昨天", "every day at 9 except when it rains")),
    {"when": "每天9点 直到周五 吃药"},
    {"when": "明天9点", "repeat": "every day until Friday"},
    {"when": "明天9点", "repeat": "FREQ=SECONDLY"},
    {"when": "明天9点", "repeat": "FREQ=DAILY;UNTIL=20200101"},
    {"when": "明天9点", "repeat": "FREQ=DAILY;COUNT=3;UNTIL=20990101"},
    {"when": "明天9点", "text": "x" * 30_000},
    {"when": "9" * 30_000},
    {"when": "明天9点", "mention": ["all"]},
)


@pytest.mark.parametrize("wish", UNSURE, ids=lambda wish: str(wish)[:40])
async def test_what_is_not_sure_or_not_allowed_is_asked_back(desk: Desk, wish: dict[str, Any]):
    refused(await desk.call("set_reminder", **{"text": "x"} | wish))
    row = await desk.set(OWNER)
    if wish["when"] and "mention" not in wish:
        refused(await desk.call("change_reminder", OWNER, number=row.pk, **wish))
    assert [one.text async for one in Reminder.objects.all()] == ["喝水"]


async def test_an_end_that_is_said_with_a_time_is_the_end_of_the_rule(desk: Desk):
    row = await desk.set(when="every day at 9 for 3 days")
    assert row.repeat == "FREQ=DAILY;COUNT=3"
    row = await desk.set(when="每天9点到2030年1月1日，周末除外", repeat=None)
    assert row.repeat == "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20300101"


async def test_a_task_repeats_every_ten_minutes_at_most(desk: Desk):
    often: dict[str, Any] = {
        "text": "x",
        "when": "PT1H",
        "kind": "task",
        "repeat": "FREQ=MINUTELY;INTERVAL=9",
    }
    assert "600" in refused(await desk.call("set_reminder", **often))
    row = await desk.set(**often | {"repeat": "FREQ=MINUTELY;INTERVAL=10"})
    often_again: dict[str, Any] = {"number": row.pk, "repeat": "FREQ=MINUTELY;INTERVAL=9"}
    assert "600" in refused(await desk.call("change_reminder", **often_again))
    assert (await desk.call("change_reminder", OWNER, **often_again)).success
    assert "60" in refused(
        await desk.call("set_reminder", text="x", when="PT1H", repeat="FREQ=SECONDLY;INTERVAL=59")
    )


async def test_a_task_that_is_due_sets_none_that_is_due_soon(desk: Desk):
    soon: dict[str, Any] = {"text": "x", "when": "PT9M", "kind": "task", "reason": "reminder"}
    assert "10" in refused(await desk.call("set_reminder", **soon))
    later = await desk.set(**soon | {"when": "PT11M"})
    assert later.kind == "task"
    assert (await desk.set(**soon | {"kind": "text"})).kind == "text"
    sooner: dict[str, Any] = {"number": later.pk, "when": "PT1M", "reason": "reminder"}
    assert "10" in refused(await desk.call("change_reminder", **sooner))
    assert (await desk.call("set_reminder", OWNER, **soon)).success
    assert (await desk.call("set_reminder", **soon | {"reason": "mentioned"})).success


async def test_what_a_model_sets_counts_for_who_asked(desk: Desk):
    row = await desk.set()
    fields = {"session_id": row.session_id, "set_by": MEMBER, "due_at": row.due_at}
    await Reminder.objects.abulk_create(Reminder(text="x", **fields) for _ in range(19))
    assert "20" in refused(await desk.call("set_reminder", text="x", when="PT1H"))
    assert (await desk.call("set_reminder", OWNER, text="x", when="PT1H")).success


async def test_an_instant_with_an_offset_is_that_instant(desk: Desk):
    year = timezone.now().year + 1
    row = await desk.set(when=f"{year}-01-31T08:00+02:00")
    assert row.due_at == datetime(year, 1, 31, 6, tzinfo=UTC)
