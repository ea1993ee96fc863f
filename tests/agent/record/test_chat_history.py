"""What a model is shown of a chat's past: what the owner wrote by hand, nothing that was taken
back, nothing from before a reset, and quoted words where they were said."""

from typing import Any

import pytest
from django.utils import timezone

from agent.llm.requests.messages import content_text, strip_frame
from agent.models import ChatSession, Message
from agent.record.chats.chat_history import load_history
from agent.record.chats.chat_record import MessageRecall, record_recall
from agent.record.runs.runs import ActiveRun, StartRun
from tests.agent.talk import GROUP, PLAN, PRIVATE, accept, begin, message
from tools.text.fences import FenceKind, fence_values

pytestmark = pytest.mark.django_db


def asked(text: str, **fields: Any) -> tuple[int, int, ActiveRun]:
    """A message of Ann's, its session, and its run."""
    (said,) = accept(message(text, PRIVATE, **fields))
    (run,) = begin([StartRun(PLAN, said.pk, said.session_pk)])
    return said.pk, said.session_pk, run


def answered(text: str, answer: str, **fields: Any) -> int:
    """An exchange on record; its session."""
    pk, session_pk, run = asked(text, **fields)
    told(session_pk, run.run_pk, answer)
    Message.objects.filter(pk=pk).update(state="answered", in_history=True, run=run.run_pk)
    return session_pk


def told(session_pk: int, run_pk: int, text: str, **fields: Any) -> None:
    said = {"direction": "out", "state": "delivered", "in_history": True}
    Message.objects.create(
        session_id=session_pk, run_id=run_pk, text=text, created_at=timezone.now(), **said | fields
    )


def by_hand(text: str, **fields: Any) -> None:
    own = {"from_own_account": True, "sender_id": "10001"} | fields
    accept(message(text, PRIVATE, **own))


def shown(session_pk: int, count: int = 20, after: int | None = None) -> list[str]:
    return [
        ("" if one["role"] == "user" else "我：") + strip_frame(content_text(one["content"]))
        for one in load_history(session_pk, PRIVATE, count, after)
    ]


# --- What the owner writes by hand ----------------------------------------------------


def test_what_the_owner_writes_by_hand_stands_where_it_was_said():
    answered("q1", "a1")
    by_hand("我来说两句", message_id="51")
    session_pk = answered("q2", "a2")
    assert shown(session_pk) == ["q1", "我：a1", "我：我来说两句", "q2", "我：a2"]


def test_words_written_by_hand_before_the_first_run_are_what_it_begins_with():
    by_hand("我周五回来", message_id="51")
    _, session_pk, run = asked("什么时候回来？")
    assert [one["content"] for one in run.history] == ["我周五回来"]
    assert shown(session_pk) == ["我：我周五回来"]


def test_words_written_by_hand_while_a_run_works_change_nothing_that_was_sent_before():
    session_pk = answered("q1", "a1")
    before = load_history(session_pk, PRIVATE, 20)
    pk, _, run = asked("q2")
    by_hand("等一下", message_id="51")
    told(session_pk, run.run_pk, "a2")
    Message.objects.filter(pk=pk).update(in_history=True, run=run.run_pk)
    after = load_history(session_pk, PRIVATE, 20)
    assert after[: len(before)] == before
    assert shown(session_pk)[2:] == ["q2", "我：等一下", "我：a2"]


def test_what_was_sent_from_here_is_not_doubled_when_the_client_reports_it_first():
    pk, session_pk, run = asked("q1")
    segments = [{"type": "at", "data": {"qq": "1"}}, {"type": "text", "data": {"text": " hello"}}]
    told(session_pk, run.run_pk, "**hello**", state="sent", segments=segments)
    by_hand("[@1] hello", message_id="51", segments=segments[1:])
    assert shown(session_pk) == []  # the answer's question is not in the history yet
    assert Message.objects.filter(reason="own_message").count() == 0
    assert pk


# --- What is not shown ------------------------------------------------------------------


def test_a_recalled_message_is_not_shown_again():
    answered("secret", "a1", message_id="41")
    session_pk = answered("q2", "a2", message_id="42")
    record_recall(MessageRecall("10001", "41", PRIVATE))
    assert shown(session_pk) == ["q2", "我：a2"]


def test_what_is_changed_on_record_is_shown_as_it_is_now():
    session_pk = answered("q1", "a1")
    assert shown(session_pk) == ["q1", "我：a1"]
    Message.objects.filter(direction="in").update(media_text=" 【图片内容】: a cat")
    Message.objects.filter(direction="out").update(text="a2")
    assert shown(session_pk) == ["q1 【图片内容】: a cat", "我：a2"]


def test_after_a_reset_nothing_from_before_is_shown():
    session_pk = answered("q1", "a1")
    last = Message.objects.latest("pk").pk
    ChatSession.objects.filter(pk=session_pk).update(context_after=last)
    answered("q2", "a2")
    assert shown(session_pk, after=last) == ["q2", "我：a2"]
    _, _, run = asked("q3")
    assert [strip_frame(one["content"]) for one in run.history] == ["q2", "a2"]


def test_where_the_past_is_cut_it_begins_with_a_question():
    by_hand("first", message_id="51")
    for number in range(3):
        session_pk = answered(f"q{number}", f"a{number}")
    assert shown(session_pk) == ["我：first", "q0", "我：a0", "q1", "我：a1", "q2", "我：a2"]
    assert shown(session_pk, count=5) == ["q1", "我：a1", "q2", "我：a2"]


# --- Its form ---------------------------------------------------------------------------


def test_the_parts_of_one_answer_are_one_message():
    _, session_pk, run = asked("q1")
    Message.objects.update(in_history=True, run=run.run_pk)
    for number, text in enumerate(["one", "two", "three"], 1):
        told(session_pk, run.run_pk, text, part=number)
    assert shown(session_pk) == ["q1", "我：one\ntwo\nthree"]


def test_quoted_words_follow_the_words_in_every_later_request():
    session_pk = answered("看", "a1")
    fence = fence_values(FenceKind.QUOTED, [{"message_id": "1", "text": "hi"}])
    Message.objects.filter(text="看").update(context_text=fence)
    assert shown(session_pk) == [f"看\n{fence}", "我：a1"]
    assert GROUP.key not in shown(session_pk)[0]
