"""What counts in a chat, on its page; the switch that silences it; and pauses."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agent.models import ChatSession, Manners
from tests.admin.record import chat, logged_in, page, said
from tools.live_rows import ConfigVersion, LiveKind
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
SESSIONS = "/admin/agent/chatsession/"


RULES = "?panel=rules"


def address(session: ChatSession, view: str = "change") -> str:
    return f"{SESSIONS}{session.pk}/{view}/"


def test_all_that_counts_is_shown_with_the_row_that_says_it(browser: Client):
    here = Manners.objects.create(name="here", chats="group:700", wake_chance=2)
    Manners.objects.create(name="house", wake_chance=5, quiet_hours="23:00-07:30")
    Manners.objects.create(name="not here", chats="group:701", wake_names="Ann")
    text = page(browser, address(chat()) + RULES)
    row = text.partition("Chance (%)")[2].partition("</tr>")[0]
    assert row.startswith("</th><td>2")
    assert f'href="/admin/agent/manners/{here.pk}/change/">here</a>' in row
    assert "23:00-07:30" in text
    assert "not here" not in text


def test_the_link_for_this_chat_fills_in_where_it_is(browser: Client):
    text = page(browser, address(chat()) + RULES)
    assert "manners/add/?account=10001&amp;chat_kind=group&amp;chats=group%3A700" in text


def test_a_chat_is_silenced_and_speaks_again_by_a_button(browser: Client):
    session = chat()
    browser.post(address(session, "act/silence"))
    row = Manners.objects.get()
    assert (row.silenced, row.chats, row.account) == (True, "group:700", "10001")
    assert "This chat is silenced by" in page(browser, address(session))
    browser.post(address(session, "act/speak"))
    row.refresh_from_db()
    assert not row.silenced
    assert [change.author is not None for change in ToolConfigChange.objects.all()] == [True] * 2


def test_a_chat_that_another_row_silences_stays_so_and_that_is_said(browser: Client):
    Manners.objects.create(name="house", silenced=True)
    answer = browser.post(address(chat(), "act/speak"), follow=True)
    assert "It is still silenced by “house”" in answer.content.decode()
    assert Manners.objects.count() == 1


def test_a_pause_is_shown_with_its_end_and_lifted_by_a_button(browser: Client):
    session, now = chat(), timezone.now()
    version = ConfigVersion.current(LiveKind.PAUSES)
    ChatSession.objects.update(
        pause_reason="muted", paused_at=now, paused_until=now + timedelta(hours=1)
    )
    text = page(browser, address(session))
    assert "The account cannot speak here: muted, since" in text
    assert "It ends by itself at" in text
    assert browser.post(address(session, "act/lift")).status_code == 302
    session.refresh_from_db()
    assert (session.pause_reason, session.paused_at, session.paused_until) == (None, None, None)
    assert ConfigVersion.current(LiveKind.PAUSES) > version
    assert "cannot speak here" not in page(browser, address(session))


def test_a_pause_that_has_ended_is_none(browser: Client):
    session, now = chat(), timezone.now()
    ChatSession.objects.update(pause_reason="muted", paused_at=now, paused_until=now)
    assert "cannot speak here" not in page(browser, address(session))


def test_the_list_of_chats_shows_and_filters_silence(browser: Client):
    for number in ("700", "701", "702"):
        chat(number, title=f"chat {number}")
    chat("700", kind="private", title="in private")
    Manners.objects.create(name="a", chats="group:700", silenced=True)
    Manners.objects.create(name="b", account="10002", silenced=True)
    ChatSession.objects.filter(peer_id="701").update(pause_reason="left", paused_at=timezone.now())
    text = page(browser, SESSIONS)
    assert "silenced</span>" in text
    assert "no longer in the group</span>" in text
    silenced, paused = (
        page(browser, f"{SESSIONS}?silence={one}") for one in ("silenced", "paused")
    )
    found = [f"chat {number}" in text for text in (silenced, paused) for number in (700, 701, 702)]
    assert found == [True, False, False, False, True, False]
    assert "in private" not in silenced


@pytest.mark.parametrize(("group", "status"), [("operator", 302), ("viewer", 403)])
@pytest.mark.parametrize("view", ["act/silence", "act/lift"])
def test_operators_use_the_buttons_and_viewers_do_not(group: str, status: int, view: str):
    session, client = chat(), logged_in(group)
    ChatSession.objects.update(pause_reason="muted", paused_at=timezone.now())
    assert client.post(address(session, view)).status_code == status
    text = page(client, address(session))
    assert ("/act/silence/" in text or "/act/speak/" in text) == (group == "operator")
    assert "What counts here" in page(client, address(session) + RULES)


LINK = '<a href="/admin/agent/manners/?q=night+row">night row</a>'
NEVER = "this person or group is never answered"


SILENCES = [
    ("silenced", "night row", f"this chat is silenced (manners: {LINK})"),
    ("quiet_hours", "night row", f"said in quiet hours (manners: {LINK})"),
    ("private_off", "night row", f"private messages are not answered (manners: {LINK})"),
    ("not_friend", "night row", f"of friends are answered (manners: {LINK})"),
    ("blocked", "night row", f"{NEVER} (manners: {LINK})"),
    ("blocked", "", f"{NEVER} (by the lists on the bot’s page)"),
    ("not_listed", "night row", f"not among those who are answered (manners: {LINK})"),
    ("paused", "all_muted", "the bot may not speak in this chat (everybody in the group"),
    ("groups_off", "", "answers in groups are switched off (GROUP_REPLY_ON_MENTION)"),
]


def test_why_the_bot_keeps_silent_is_said_in_words_on_every_page(browser: Client):
    session = chat()
    told = [
        (said(session, state="silent", reason=reason, detail=detail), words)
        for reason, detail, words in SILENCES
    ]
    listed = page(browser, "/admin/agent/message/")
    for message, words in told:
        assert words in listed
        assert words in page(browser, f"/admin/agent/message/{message.pk}/change/")
        assert words in page(browser, address(session) + f"?panel=m{message.pk}")


def test_the_name_of_a_row_is_no_markup(browser: Client):
    message = said(chat(), state="silent", reason="silenced", detail="<script>x</script>")
    Manners.objects.create(name="<script>x</script>", silenced=True)
    for where in (address(message.session), "/admin/agent/message/", "/admin/agent/manners/"):
        assert "<script>x" not in page(browser, where)
