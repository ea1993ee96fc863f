"""Messages that were taken back: found in the right chat, marked whenever they come, out of quotes
and summaries."""

import pytest
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import Digest, Message
from agent.record.chats import early_recalls
from agent.record.chats.chat_record import MessageRecall, record_recall
from agent.record.chats.quoted_words import RECALLED, blank_quoted
from onebot.gateway.gateway import recalled_chat
from onebot.protocol.events import OtherEvent
from onebot.protocol.notices import read_notice
from tests.agent.talk import GROUP, PRIVATE, accept, message
from tools.text.fences import FenceKind, fence_values

pytestmark = pytest.mark.django_db
OTHER = ChatAddress("10001", "group", "30002")


@pytest.fixture(autouse=True)
def _none_before() -> None:
    early_recalls.forget()


def recall(message_id: str, chat: ChatAddress | None = None) -> list[int]:
    hit = record_recall(MessageRecall("10001", message_id, chat))
    return [one.pk for one in hit]


def test_a_recall_touches_only_the_chat_that_its_notice_names():
    """Checklist 67."""
    here, there = accept(
        message("a", GROUP, message_id="5"), message("b", OTHER, message_id="5", sender_id="2")
    )
    assert recall("5", GROUP) == [here.pk]
    assert Message.objects.get(pk=there.pk).recalled_at is None


def test_a_message_that_is_recalled_twice_is_hit_once():
    """Checklist 74."""
    (said,) = accept(message("a", GROUP, message_id="5", mentions_bot=True))
    first = record_recall(MessageRecall("10001", "5", GROUP))
    assert [(one.pk, one.chat, one.state) for one in first] == [(said.pk, GROUP, "waiting")]
    assert recall("5", GROUP) == []


def test_a_recall_before_its_message_marks_it_when_it_comes():
    """Checklist 74."""
    recall("5", GROUP)
    late, other = accept(
        message("a", GROUP, message_id="5", mentions_bot=True), message("b", OTHER, message_id="5")
    )
    row = Message.objects.get(pk=late.pk)
    assert (row.state, row.reason) == ("silent", "recalled")
    assert row.recalled_at is not None
    assert Message.objects.get(pk=other.pk).recalled_at is None


def test_recalls_that_nobody_waits_for_take_a_bounded_place():
    for number in range(early_recalls.MOST + 10):
        early_recalls.remember("10001", str(number), GROUP, timezone.now())
    assert not early_recalls.was_recalled(GROUP, "0", timezone.now())
    assert early_recalls.was_recalled(GROUP, str(early_recalls.MOST), timezone.now())
    assert not early_recalls.was_recalled(
        GROUP, str(early_recalls.MOST), timezone.now() + early_recalls.KEPT_FOR
    )


@pytest.mark.parametrize(
    ("notice", "chat"),
    [
        ({"notice_type": "group_recall", "group_id": 30001, "user_id": 2}, GROUP),
        ({"notice_type": "group_recall", "user_id": 2}, None),
        ({"notice_type": "friend_recall", "user_id": "20001"}, PRIVATE),
        (
            {"notice_type": "friend_recall", "user_id": 10001},
            ChatAddress("10001", "private", ""),
        ),
        ({"notice_type": "friend_recall", "user_id": 10001, "target_id": 20001}, PRIVATE),
    ],
)
def test_a_notice_says_where_the_message_stood(notice, chat):
    event = OtherEvent("10001", "notice", notice["notice_type"], "", notice)
    told = read_notice(event, "10001")
    assert told is not None
    assert recalled_chat(event, told, "10001") == chat


def test_the_words_of_a_recalled_message_leave_those_that_quote_it():
    (secret, quoting) = accept(
        message("secret", GROUP, message_id="5"), message("见上", GROUP, message_id="6")
    )
    inner = {"message_id": "5", "sender": {"user_id": "2"}, "text": "secret", "quotes": {"text": 1}}
    fence = fence_values(FenceKind.QUOTED, [{"message_id": "4", "text": "keep", "quotes": inner}])
    Message.objects.filter(pk=quoting.pk).update(context_text=fence)
    recall("5", GROUP)
    left = Message.objects.get(pk=quoting.pk).context_text or ""
    assert "secret" not in left
    assert "keep" in left
    assert RECALLED in left
    assert left == blank_quoted(left, "5")
    assert Message.objects.get(pk=secret.pk).text == "secret"  # the record keeps it


def test_a_recalled_message_that_is_not_on_record_leaves_those_that_quote_it_too():
    said, other = accept(
        message("见上", GROUP, message_id="6"), message("见上", OTHER, message_id="6")
    )
    fence = fence_values(FenceKind.QUOTED, [{"message_id": "5", "text": "secret"}])
    Message.objects.update(context_text=fence)
    recall("5", GROUP)
    assert "secret" not in (Message.objects.get(pk=said.pk).context_text or "")
    assert "secret" in (Message.objects.get(pk=other.pk).context_text or "")


@pytest.mark.parametrize(("origin", "left"), [("quoted", ""), ("message", "[a cat]")])
def test_what_was_read_in_the_pictures_of_a_recalled_message_goes_with_it(origin, left):
    _, quoting = accept(
        message("[图片]", GROUP, message_id="5"),
        message("看", GROUP, message_id="6", quoted_id="5"),
    )
    row = Message.objects.get(pk=quoting.pk)
    row.media.create(kind="image", origin=origin, created_at=timezone.now())
    Message.objects.filter(pk=quoting.pk).update(media_text="[a cat]")
    recall("5", GROUP)
    assert Message.objects.get(pk=quoting.pk).media_text == left


def test_a_summary_that_covers_a_recalled_message_goes_with_all_made_from_it():
    (said,) = accept(message("secret", GROUP, message_id="5"))
    row = Message.objects.get(pk=said.pk)
    run = row.session.runs.create(started_at=timezone.now())
    Message.objects.filter(pk=said.pk).update(in_history=True, run=run)
    for first in (run.pk - 10, run.pk, run.pk + 10):
        Digest.objects.create(
            session_id=row.session_id,
            kind="summary",
            first_run=max(0, first),
            last_run=max(0, first) + 5 if first >= run.pk else 0,
            created_at=timezone.now(),
            text="?",
        )
    recall("5", GROUP)
    assert [one.last_run for one in Digest.objects.all()] == [0]
