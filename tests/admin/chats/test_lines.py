"""What happened in a chat stands among its messages, in words."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from agent.admin.chats.lines import MOST_LINES, SENTENCES
from agent.admin.chats.stream import CHAT_PAGE_SIZE
from agent.domain.states import ActKind
from agent.models import ChatEvent, ChatSession, Message
from agent.record.waiting.operator_acts import record_act
from tests.admin.record import chat, page, said

HOSTILE = "<script>alert(1)</script>{who}%(who)s\u202e"


def happened(session: ChatSession, kind: str = "join", change: str = "", **facts) -> ChatEvent:
    facts.setdefault("user_id", "20002")
    facts.setdefault("at", timezone.now())
    key = str(ChatEvent.objects.count())
    return ChatEvent.objects.create(session=session, key=key, kind=kind, change=change, **facts)


def address(session: ChatSession, part: str = "change", query: str = "") -> str:
    return f"/admin/agent/chatsession/{session.pk}/{part}/{query}"


def lines(text: str) -> list[str]:
    """The words of the lines that are shown, without their times."""
    found = re.findall(r'data-event="\d+">.*?</time> (.*?)</li>', text)
    return [strip_tags(one).replace("\xa0", " ").strip() for one in found]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"kind": "poke", "target_id": "10001"}, "Ann (20002) poked bot (10001)"),
        ({"kind": "poke", "user_id": "", "target_id": ""}, "somebody poked somebody"),
        ({"kind": "join", "change": "approve"}, "Ann (20002) joined"),
        (
            {"kind": "join", "change": "invite", "operator_id": "20009"},
            "Ann (20002) joined by invitation · by 20009",
        ),
        ({"kind": "leave", "change": "leave", "operator_id": "20002"}, "Ann (20002) left"),
        (
            {"kind": "leave", "change": "kick", "operator_id": "20009"},
            "Ann (20002) was removed from the group · by 20009",
        ),
        ({"kind": "leave", "change": "disband"}, "the group was disbanded"),
        ({"kind": "recall"}, "a message of Ann (20002) was taken back"),
        (
            {"kind": "mute", "change": "ban", "seconds": 600, "operator_id": "20009"},
            "Ann (20002) was muted for 10 minutes · by 20009",
        ),
        (
            {"kind": "mute", "change": "ban", "seconds": 2**31 - 1},
            "Ann (20002) was muted for 68 years",
        ),
        ({"kind": "mute", "change": "ban", "seconds": 30}, "Ann (20002) was muted for 30 s"),
        (
            {"kind": "mute", "change": "ban", "user_id": "", "operator_id": "20009"},
            "everybody was muted · by 20009",
        ),
        ({"kind": "mute", "change": "lift", "user_id": ""}, "everybody may speak again"),
        ({"kind": "admin", "change": "set"}, "Ann (20002) became an administrator"),
        ({"kind": "title", "words": "King"}, "Ann (20002) was given the title “King”"),
        ({"kind": "card", "words": ""}, "Ann (20002) has no card any more"),
        ({"kind": "upload", "words": "../a.pdf"}, "Ann (20002) uploaded the file “../a.pdf”"),
        (
            {"kind": "essence", "change": "add", "operator_id": "20009"},
            "a message of Ann (20002) was made an essence message · by 20009",
        ),
        (
            {"kind": "honor", "change": "talkative"},
            "Ann (20002) is the most talkative of the group",
        ),
        (
            {"kind": "reaction", "change": "add", "words": "76 128077"},
            "Ann (20002) reacted to a message with [赞] 👍",
        ),
        (
            {"kind": "name", "user_id": "", "operator_id": "20009", "words": "Tea"},
            "the group is called “Tea” now · by 20009",
        ),
        ({"kind": "friend"}, "Ann (20002) is a friend now"),
    ],
)
def test_76_every_notice_is_a_line_in_words(browser: Client, facts, words):
    session = said(chat(), sender_id="20002", sender_name="Ann").session
    happened(session, **facts)
    text = page(browser, address(session))
    assert [re.sub("68 years.*", "68 years", one) for one in lines(text)] == [words]


def test_every_sentence_takes_what_it_names():
    for sentence in SENTENCES.values():
        str(sentence).format(who="", target="", time="", words="")


def test_names_and_words_of_people_are_shown_as_text(browser: Client):
    session = said(chat(), sender_id="20002", sender_name=HOSTILE).session
    for kind in ("card", "upload", "name", "reaction", "poke"):
        happened(session, kind, words=HOSTILE[:200], operator_id="20002", target_id="20002")
    text = page(browser, address(session))
    assert len(lines(text)) == 5
    assert "<script>alert" not in text
    assert "{who}%(who)s" in lines(text)[0]
    assert "\u202e" not in text


def test_lines_stand_where_they_happened_and_come_live(browser: Client):
    session = chat()
    before, event, after = said(session), happened(session), said(session)
    text = page(browser, address(session))
    places = [
        text.index(f'id="{one}"') for one in (f"m{before.pk}", f"e{event.pk}", f"m{after.pk}")
    ]
    assert places == sorted(places)
    asked = f"?after={after.pk}&event="
    assert lines(page(browser, address(session, "news", f"{asked}0")))
    assert not lines(page(browser, address(session, "news", f"{asked}{event.pk}")))


def test_lines_before_the_messages_of_the_page_are_no_news(browser: Client):
    session = chat()
    happened(session)
    record_act(ActKind.RESET, session.pk, User.objects.get())
    newest = [said(session) for _ in range(CHAT_PAGE_SIZE + 1)][-1]
    text = page(browser, address(session))
    assert not lines(text)
    mark = re.search(rf'data-message="{newest.pk}" data-mark="(\w+)"', text)
    assert mark
    news = f"?after={newest.pk}&act=0&event=0&marks={newest.pk}.{mark[1]}"
    assert 'class="act' not in page(browser, address(session, "news", news))
    assert 'id="m' in page(browser, address(session, "stream", f"?before={newest.pk}"))


def test_of_a_flood_the_newest_are_shown_and_older_pages_have_theirs(browser: Client):
    session, now = chat(), timezone.now()
    rows = [said(session) for _ in range(CHAT_PAGE_SIZE + 1)]
    Message.objects.filter(pk=rows[0].pk).update(created_at=now - timedelta(hours=2))
    happened(session, user_id="1", at=now - timedelta(hours=1))
    for number in range(MOST_LINES + 5):
        happened(session, user_id=str(30_000 + number))
    shown = lines(page(browser, address(session)))
    assert (len(shown), shown[-1]) == (MOST_LINES, f"{30_000 + MOST_LINES + 4} joined")
    mark = f"{rows[-1].pk}.1"
    news = lines(page(browser, address(session, "news", f"?event=0&after=1&marks={mark}")))
    assert news[-1] == shown[-1]
    older = lines(page(browser, address(session, "stream", f"?before={rows[1].pk}")))
    assert older == ["1 joined"]


def test_people_are_called_by_what_they_said_last_in_this_chat_alone(browser: Client):
    session, other = chat(), chat("701")
    said(other, sender_id="20002", sender_name="Elsewhere")
    happened(session)
    assert lines(page(browser, address(session))) == ["20002 joined"]
    said(session, sender_id="20002", sender_name="Ann")
    for _ in range(CHAT_PAGE_SIZE + 1):
        said(session)
    happened(session)
    assert lines(page(browser, address(session)))[-1] == "Ann (20002) joined"
