"""Why QQ refused what an official bot said: too late, too often, or unasked."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agent.domain.failures import FailureKind, owner_note, refusal_kind
from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message, Run
from agent.pages.error_words import explain_error
from onebot.gateway.passive_answers import explain_refusal
from onebot.models import Bot

pytestmark = pytest.mark.django_db
GROUP, PERSON = ChatAddress("10001", "group", "G1"), ChatAddress("10001", "private", "P1")
UNASKED = "40034105 主动消息失败, 无权限"


def heard(chat: ChatAddress, *, minutes: float = 0, answers: int = 0) -> None:
    """A message so long ago, and so many answers to it that arrived."""
    at = timezone.now() - timedelta(minutes=minutes)
    session = ChatSession.objects.create(
        account=chat.account,
        kind=chat.kind,
        peer_id=chat.peer_id,
        platform=chat.platform,
        last_message_at=at,
    )
    Message.objects.create(
        session=session, direction="in", state="running", message_id="m1", created_at=at
    )
    for _ in range(answers):
        Message.objects.create(
            session=session, direction="out", state="delivered", created_at=timezone.now()
        )


def official(client_name: str = "onebots/1.0.0") -> None:
    Bot.objects.create(self_id="10001", client_name=client_name)


@pytest.mark.parametrize(
    ("chat", "minutes", "answers", "kind"),
    [
        (GROUP, 6, 0, FailureKind.LATE),
        (GROUP, 4, 5, FailureKind.OFTEN),
        (GROUP, 4, 4, FailureKind.SENDING),
        (PERSON, 59, 4, FailureKind.SENDING),
        (PERSON, 61, 0, FailureKind.LATE),
    ],
)
def test_answers_that_qq_refused_are_counted(chat, minutes, answers, kind):
    official()
    heard(chat, minutes=minutes, answers=answers)
    said = explain_refusal(chat, "", "failed")
    assert refusal_kind(said) == kind
    assert said.endswith("failed")


def test_an_account_of_another_client_is_refused_for_other_reasons():
    official("NapCat.Onebot/4.8.0")
    heard(GROUP, minutes=60)
    assert explain_refusal(GROUP, "", "failed") == "failed"


@pytest.mark.parametrize("words", [UNASKED, "retcode 40034102"])
def test_qqs_own_words_for_unasked_messages_are_understood_of_any_client(words):
    heard(GROUP)
    assert refusal_kind(explain_refusal(GROUP, "", words)) == FailureKind.UNASKED
    assert explain_refusal(PERSON, "", words).startswith("unasked")


def test_page_and_owners_are_told_in_the_same_sentence():
    official("gensokyo/v1.0.0")
    heard(GROUP, answers=5)
    said = explain_refusal(GROUP, "", "retcode -1")
    told = explain_error(said)
    assert "retcode -1" in told.raw
    assert told.sentence in owner_note(refusal_kind(said), GROUP, "", 1, "/")


def sent_by_a_run(reason: str = "mention") -> str:
    """The echo of what a run says that is too late."""
    official()
    Bot.objects.update(owners="7, 8")
    heard(GROUP, minutes=6)
    asked = Message.objects.get()
    Message.objects.update(reason=reason)
    run = Run.objects.create(session=asked.session, message=asked, started_at=timezone.now())
    fields = {"run": run, "echo": "e1", "state": "sent", "created_at": timezone.now()}
    Message.objects.create(session=asked.session, direction="out", **fields)
    return "e1"


def noted() -> list[str]:
    return [
        *Message.objects.filter(reason="owner_note", direction="in", text__gt="").values_list(
            "text", flat=True
        )
    ]


def test_owners_are_told_of_a_refusal_once_whether_an_answer_or_a_tool_spoke():
    echo = sent_by_a_run()
    for _ in range(2):
        explain_refusal(GROUP, echo, "failed")
    notes = noted()
    assert len(notes) == 2  # one for each of them
    assert "group:G1" in notes[0]
    assert "5" in notes[0]


def test_of_a_note_to_owners_that_was_refused_no_other_is_sent():
    explain_refusal(GROUP, sent_by_a_run("owner_note"), "failed")
    assert noted() == []
