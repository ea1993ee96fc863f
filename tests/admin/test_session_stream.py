"""What the page of a chat fetches while it is read, and finds in it."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client

from agent.admin.chats.stream import CHAT_PAGE_SIZE
from agent.domain.states import ActKind
from agent.models import ChatGrant, ChatSession, Message
from agent.record.waiting.operator_acts import record_act
from tests.admin.record import answered, chat, logged_in, page, run_for, said
from tests.pictures import plain, saved


def address(session: ChatSession, part: str = "change", query: str = "") -> str:
    return f"/admin/agent/chatsession/{session.pk}/{part}/{query}"


def bubbles(text: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<li id="m(\d+)"', text)]


def mark_of(text: str, message: Message) -> str:
    found = re.search(rf'data-message="{message.pk}" data-mark="(\w+)"', text)
    assert found
    return f"{message.pk}.{found[1]}"


def test_older_parts_lead_to_the_beginning(browser: Client):
    session = chat()
    rows = [said(session).pk for _ in range(CHAT_PAGE_SIZE + 5)]
    first = page(browser, address(session))
    edge = re.search(r'data-edge="([^"]*)"', first)
    assert edge
    older = page(browser, edge[1])
    assert bubbles(older) + bubbles(first) == rows
    assert "edge older" not in older


def test_news_are_what_is_new_and_what_has_changed(browser: Client):
    session = chat()
    same, changing = said(session), said(session, state="running", reason="mention")
    shown = page(browser, address(session))
    marks = ",".join(mark_of(shown, one) for one in (same, changing))
    asked = f"?after={changing.pk}&act=0&marks={marks}"
    assert bubbles(page(browser, address(session, "news", asked))) == []
    Message.objects.filter(pk=changing.pk).update(state="answered")
    answer = answered(changing)
    assert bubbles(page(browser, address(session, "news", asked))) == [changing.pk, answer.pk]


def test_acts_of_operators_stand_where_they_were_done_and_come_live(browser: Client):
    session = chat()
    before = said(session)
    act = record_act(ActKind.RESET, session.pk, User.objects.get())
    after = said(session)
    text = page(browser, address(session))
    assert text.index(f'id="m{before.pk}"') < text.index(f'id="a{act.pk}"')
    assert text.index(f'id="a{act.pk}"') < text.index(f'id="m{after.pk}"')
    news = page(browser, address(session, "news", f"?after={after.pk}&act=0"))
    assert f'id="a{act.pk}"' in news
    assert "reset the context" in news
    assert f'id="a{act.pk}"' not in page(browser, address(session, "news", f"?act={act.pk}"))


NONSENSE = ("before=x", "after=-1", "marks=1.zz,a.b,,", "act=" + "9" * 40, "date=2026-99-99")


def test_nonsense_in_the_address_breaks_nothing(browser: Client):
    session = said(chat()).session
    for part in ("stream", "news", "change"):
        for query in NONSENSE:
            page(browser, address(session, part, f"?{query}"))


def test_a_day_is_jumped_to(browser: Client):
    session = chat()
    rows = [said(session) for _ in range(2 * CHAT_PAGE_SIZE)]
    for number, row in enumerate(rows):
        at = datetime(2026, 3, 1 + (number >= 30), 12, tzinfo=UTC)
        Message.objects.filter(pk=row.pk).update(created_at=at)
    shown = bubbles(page(browser, address(session, query="?date=2026-03-02")))
    assert shown == [row.pk for row in rows[30 : 30 + CHAT_PAGE_SIZE]]


def test_words_and_names_are_found_in_this_chat_alone(browser: Client):
    wanted, other = said(chat(), "rain in Oslo", sender_name="木木"), said(chat("701"), "rain")
    for term in ("oslo", "木木", wanted.sender_id, "rain oslo"):
        text = page(browser, address(wanted.session, query=f"?find={term}"))
        assert f"?around={wanted.pk}#m{wanted.pk}" in text
    assert "<mark>rain</mark> in <mark>Oslo</mark>" in text
    text = page(browser, address(other.session, query="?find=oslo"))
    assert "0 messages" in text


def test_what_is_searched_is_shown_as_text(browser: Client):
    message = said(chat(), "a <script> b")
    text = page(browser, address(message.session, query="?find=%3Cscript%3E"))
    assert "<mark>&lt;script&gt;</mark>" in text
    assert 'value="&lt;script&gt;"' in text


def test_a_quote_is_drawn_with_its_words_and_leads_to_them(browser: Client):
    session = chat()
    quoted = said(session, "the first", message_id="77")
    segments = [{"type": "reply", "data": {"id": "77"}}, {"type": "text", "data": {"text": "yes"}}]
    said(session, "[回复:77]yes", quoted_id="77", segments=segments)
    said(session, "[回复:78]", quoted_id="78", segments=segments[:1])
    text = page(browser, address(session))
    assert f'data-jump="m{quoted.pk}"' in text
    assert "the first" in text[text.index("<blockquote>") :]
    assert "quotes a message that is not on record" in text
    assert "[回复:77]" not in text


def test_a_message_that_was_taken_back_says_so(browser: Client):
    message = said(chat(), recalled_at=datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC))
    assert "taken back at" in page(browser, address(message.session))


def test_a_picture_that_the_bot_sent_is_shown_small(browser: Client):
    folder = Path(settings.MEDIA_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "sent.png"
    file.write_bytes(saved(plain()))
    segments = [{"type": "image", "data": {"file": f"file://{file.resolve()}"}}]
    message = answered(said(chat()), "[图片]", segments=segments)
    source = f"/admin/agent/message/{message.pk}/picture/0/"
    assert f'<img src="{source}"' in page(browser, address(message.session))
    answer = browser.get(source)
    assert answer.headers["Content-Type"] in ("image/png", "image/jpeg")
    file.unlink()
    assert browser.get(source).status_code == 404


@pytest.mark.parametrize(
    "file", ["file:///etc/passwd", "file:///proc/self/environ", "https://example.org/a.png", 5]
)
def test_no_other_file_is_shown_as_a_picture(browser: Client, file: object):
    segments = [{"type": "image", "data": {"file": file}}]
    message = answered(said(chat()), segments=segments)
    assert browser.get(f"/admin/agent/message/{message.pk}/picture/0/").status_code == 404
    assert browser.get(f"/admin/agent/message/{message.pk}/picture/7/").status_code == 404


def test_who_has_single_chats_reads_those_alone(db: None):
    own, other = answered(said(chat())), answered(said(chat("701"), "secret words"))
    client = logged_in("chat_owner")
    user = User.objects.get()
    ChatGrant.objects.create(user=user, account=own.session.account, chat=own.session.key)
    for part in ("stream", "news"):
        assert bubbles(page(client, address(own.session, part))), part
        assert client.get(address(other.session, part)).status_code == 404
    assert client.get(f"/admin/agent/message/{other.pk}/picture/0/").status_code == 404
    assert "701" not in page(client, "/admin/agent/chatsession/?q=secret")


def test_who_may_not_read_messages_is_given_none(db: None):
    session = said(chat(), "secret words").session
    client = Client(headers={"accept-language": "en"})
    user = User.objects.create_user("plain", is_staff=True)
    seen = Permission.objects.filter(codename__in=["view_every_chat", "view_chatsession"])
    user.user_permissions.set(seen)
    client.force_login(user)
    assert "secret words" not in page(client, address(session))
    for part in ("stream", "news"):
        assert client.get(address(session, part)).status_code == 403


def test_an_answer_in_the_making_is_told_by_a_sign_and_its_run(browser: Client):
    message = said(chat(), state="running", reason="mention")
    run = run_for(message, state="running")
    text = page(browser, address(message.session, query=f"?panel=m{message.pk}"))
    assert 'tone-busy"' in text
    assert f"/admin/agent/run/{run.pk}/change/" in text


def test_segments_that_are_too_long_fall_back_to_the_text(browser: Client):
    segments = [{"type": "json", "data": {"data": json.dumps({"x": "y" * 30_000})}}]
    message = said(chat(), "[卡片:a card]", segments=segments)
    text = page(browser, address(message.session))
    assert "[卡片:a card]" in text
    assert "y" * 100 not in text
