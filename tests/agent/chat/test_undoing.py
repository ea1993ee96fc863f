"""Carrying out what is taken back: what the client is told, once, and how each step ends."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.builtin_tools import reminder_tools
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.chat.undoing import Undoing
from agent.domain.client_actions import ActionOutcome
from agent.domain.undo import UndoAsker, UndoReach
from agent.models import Message, Run, UndoStep
from agent.record.record import Record
from agent.record.waiting.undoing import UndoWish, plan_undo
from tests.admin.record import call_of, chat, step_of
from tests.agent.acting import ScriptedClient, act_registry, rows
from tests.agent.record.test_undoing import exchange
from tests.agent.talk import Mailbox
from tools.registry.registry import ToolRegistry

pytestmark = pytest.mark.django_db(transaction=True)
OWNER = UndoAsker("1", "1", UndoReach.EVERYTHING)
LATE = ActionOutcome(retcode=1200, words="too late")
LOST = ActionOutcome(is_unknown=True, words="no answer")

Steps = list[tuple[str, str]]


@pytest.fixture
def undone(record: Record) -> Callable[..., Any]:
    """What the client was told, and how the steps ended, of a run that made these calls."""

    async def undo(
        client: ScriptedClient, *calls: tuple[str, dict[str, Any]], said: int = 0
    ) -> tuple[list[Any], Steps]:
        def make() -> int:
            session = chat()
            run: Any = exchange(session).run
            for number in range(said):
                exchange_in(run, number)
            for position, (name, arguments) in enumerate(calls):
                step = step_of(run, position + 1)
                noted = {"before": "before"}
                call_of(step, name, arguments=arguments, structured_content=noted)
            return session.pk

        session_pk = await sync_to_async(make)()
        undoing = Undoing(record, act_registry(record, rows()), Mailbox(), client)
        names = await undoing.registry.undoable()
        planned = await record.submit(plan_undo, UndoWish(session_pk, OWNER, names))
        for _twice in range(2):
            await undoing.carry_out(planned)
        ends = UndoStep.objects.order_by("pk").values_list("state", "words")
        return client.acts, await sync_to_async(lambda: list(ends))()

    return undo


def exchange_in(run: Any, number: int) -> None:
    first = Message.objects.filter(run=run, direction="out").first()
    assert first
    first.pk, first.message_id, first.echo = None, f"more{number}", None
    first.save()


async def test_each_message_is_recalled_once(undone):
    acts, ends = await undone(ScriptedClient(), said=2)
    assert [(name, params["message_id"]) for name, params in acts] == [
        ("delete_msg", "a1"),
        ("delete_msg", "more0"),
        ("delete_msg", "more1"),
    ]
    assert ends == [("done", "")] * 3


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (LATE, ("failed", "too late")),
        (LOST, ("unknown", "no answer")),
        (ActionOutcome(is_unsupported=True, retcode=1404), ("failed", "the client cannot do this")),
        (ActionOutcome(retcode=100), ("failed", "retcode 100")),
    ],
)
async def test_what_the_client_says_is_how_it_ends(undone, outcome, end):
    acts, ends = await undone(ScriptedClient(delete_msg=outcome))
    assert ends == [end]
    assert len(acts) == 1


async def test_a_client_that_does_not_answer_is_left_alone_after_two_steps(undone):
    acts, ends = await undone(ScriptedClient(delete_msg=LOST), said=4)
    assert [state for state, _ in ends] == ["unknown"] * 2 + ["failed"] * 3
    assert len(acts) == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "action", "params"),
    [
        ("mute_member", {"user_id": "7", "minutes": 5}, "set_group_ban", {"duration": 0}),
        ("mute_group", {"on": True}, "set_group_whole_ban", {"enable": False}),
        ("set_essence", {"message_id": "9"}, "delete_essence_msg", {"message_id": "9"}),
        ("set_member_card", {"user_id": "7", "card": "x"}, "set_group_card", {"card": "before"}),
    ],
)
async def test_acts_are_taken_back(undone, tool, arguments, action, params):
    acts, ends = await undone(ScriptedClient(), (tool, arguments))
    assert acts[-1][0] == action
    assert params.items() <= acts[-1][1].items()
    assert ends == [("done", ""), ("done", "")]


@pytest.mark.parametrize(
    ("tool", "client", "state"),
    [
        ("mute_member", ScriptedClient(set_group_ban=LATE), "failed"),
        ("mute_member", ScriptedClient(set_group_ban=LOST), "unknown"),
        ("kick_member", ScriptedClient(), "failed"),
    ],
)
async def test_acts_that_cannot_be_taken_back_are_said(undone, tool, client, state):
    _acts, ends = await undone(client, (tool, {"user_id": "7", "minutes": 5}))
    assert ends[-1][0] == state
    assert ends[-1][1]


@pytest.mark.parametrize(
    ("words", "said"), [("hello", "There is no reminder #7 here."), ("你好", "这里没有提醒 #7。")]
)
async def test_what_a_tool_says_is_in_the_language_of_the_chat(settings, record, words, said):
    settings.LANGUAGE_CODE = "en"

    def make() -> int:
        out = exchange(chat())
        Message.objects.update(text=words)
        noted = {"reminder": 7}
        call_of(
            step_of(Run.objects.get(pk=out.run_id or 0)), "set_reminder", structured_content=noted
        )
        return out.session_id

    session_pk = await sync_to_async(make)()
    registry = ToolRegistry()
    registry.register_provider(MaisakaBuiltinToolProvider(reminder_tools.TOOLS))
    wish = UndoWish(session_pk, OWNER, await registry.undoable())
    planned = await record.submit(plan_undo, wish)
    await Undoing(record, registry, Mailbox(), ScriptedClient()).carry_out(planned)
    step = await UndoStep.objects.aget(kind="call")
    assert (step.state, step.words) == ("failed", said)
