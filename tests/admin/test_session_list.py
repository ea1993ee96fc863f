"""The list of chats says who spoke last, what happened today, and who answers."""

from django.test import Client
from django.utils import timezone

from agent.domain.budgets import SpendKind
from agent.models import ActivitySum, ChatSession, SpendSum
from tests.admin.record import answered, chat, page, said
from tools.local_time import current_day

CHATS = "/admin/agent/chatsession/"


def test_the_last_message_is_shown_with_who_said_it(browser: Client):
    answered(said(chat(), "a question", sender_name="木木"), "the answer")
    said(chat("701"), "<b>hello</b>", sender_name="<i>")
    text = page(browser, CHATS)
    assert "<bdi>bot</bdi>: <bdi>the answer</bdi>" in text
    assert "<bdi>&lt;i&gt;</bdi>: <bdi>&lt;b&gt;hello&lt;/b&gt;</bdi>" in text


def test_a_title_is_written_out_once(browser: Client):
    said(chat("702", title="tea & <b>cake</b>"), "hello")
    assert "<bdi>tea &amp; &lt;b&gt;cake&lt;/b&gt;</bdi>" in page(browser, CHATS)


def test_what_happened_today_and_what_it_cost_is_shown(browser: Client):
    session = chat()
    today = timezone.localdate().isoformat()
    ActivitySum.objects.create(day=today, session=session, received=1_234)
    place = f"{session.platform}:{session.account}:{session.key}"
    spent = {"kind": SpendKind.CHAT, "subject": place, "currency": "CNY", "cost_nano": 2 * 10**9}
    SpendSum.objects.create(day=current_day(), **spent)
    text = page(browser, f"{CHATS}{session.pk}/change/?panel=chat")
    assert "1,234" in text
    assert "¥2.00" in text


def test_chats_are_found_by_the_name_of_a_person_and_by_words(browser: Client):
    said(chat("900", title="hills"), "rain in Oslo", sender_name="木木")
    said(chat("901", title="valley"), "sun")
    for term in ("木木", "oslo", "rain in", "hills", "900"):
        text = page(browser, f"{CHATS}?q={term}")
        assert "hills" in text, term
        assert "valley" not in text, term


def test_chats_that_are_taken_over_are_named_and_filtered(browser: Client):
    chat("900", title="hills")
    ChatSession.objects.filter(pk=chat("901", title="valley").pk).update(taken_over_by="Ann")
    assert "taken over by Ann" in page(browser, CHATS)
    taken = page(browser, f"{CHATS}?silence=taken_over")
    assert "valley" in taken
    assert "hills" not in taken
    assert "valley" not in page(browser, f"{CHATS}?silence=bot")
