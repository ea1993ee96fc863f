"""The search for everything: what it finds, for whom, and what it makes of strange words."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.forms import CharField
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.http import urlencode

from agent.admin.personas import PreviewForm
from agent.admin.reminders import ChatField
from agent.models import ChatGrant, ChatSession, Message, ModelEndpoint
from frostproject.cockpit.start import OwnersStepForm
from onebot.models import Bot
from tests.admin.record import CHINESE, chat, logged_in, page, said
from tools.models import ToolConfig

ADDRESS = "/admin/search/results/"
PERSON = "71000001"
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp"


def hits(
    browser: Client, query: str = "", *, known: Sequence[str] = (), **asked: str
) -> list[dict[str, Any]]:
    parameters = urlencode({"q": query, "is": known, **asked}, doseq=True)
    found: list[dict[str, Any]] = json.loads(page(browser, f"{ADDRESS}?{parameters}"))["hits"]
    assert len(found) <= 20
    return found


def of_kind(browser: Client, kind: str, query: str = "", **asked: Any) -> list[str]:
    return [hit["label"] for hit in hits(browser, query, kind=kind, **asked)]


def keys(found: list[dict[str, Any]]) -> set[str]:
    return {hit["key"] for hit in found}


@pytest.mark.parametrize("word", ["silenced", "MUTE", "quiet", "静音", "禁言"])
def test_a_setting_is_found_by_its_words_in_both_languages(browser: Client, word: str):
    found = {hit["key"]: hit for hit in hits(browser, word)}
    assert found["setting:agent.Manners.silenced"]["url"] == "/admin/agent/manners/add/#id_silenced"
    assert 'id="id_silenced"' in page(browser, "/admin/agent/manners/add/")


@pytest.mark.parametrize("words", ["persona person", "persona one", "人设 人", "专属人设"])
def test_a_persona_for_one_person_is_found(browser: Client, words: str):
    found = {hit["key"]: hit for hit in hits(browser, words)}
    adding = "/admin/agent/personachoice/add/"
    assert found["setting:agent.PersonaChoice.user_id"]["url"] == f"{adding}#id_user_id"
    assert 'id="id_user_id"' in page(browser, adding)


def test_every_field_that_is_found_stands_on_the_page_that_it_leads_to(browser: Client):
    forms: dict[str, str] = {}
    for word in ("a", "e", "o", "s", "数", "模", "时"):
        for hit in hits(browser, word, kind="setting"):
            address, _sign, field = hit["url"].partition("#")
            forms[address] = forms.get(address) or page(browser, address)
            assert not field or f'id="{field}' in forms[address], hit


def test_every_field_that_is_found_has_words_in_the_readers_language(browser: Client):
    assert not {"Asked", "Granted"} & {
        *of_kind(browser, "setting", "asked"),
        *of_kind(browser, "setting", "granted"),
    }
    assert of_kind(browser, "setting", "time zone") == ["Time zone", "Zone of the chat"]


def test_pages_are_in_the_readers_language_and_found_in_both(browser: Client):
    chinese = Client(headers=CHINESE)
    chinese.force_login(User.objects.get())
    assert "Manners" in of_kind(browser, "page", "manners")
    assert "Manners" in of_kind(browser, "page", "群规则")
    assert "群规则" in of_kind(chinese, "page", "manners")
    assert "/admin/agent/persona/add/" in {hit["url"] for hit in hits(browser, "add persona")}
    assert "Silence everything" in of_kind(browser, "act", "mute")
    assert "Overview" in [hit["label"] for hit in hits(browser)]


def test_rows_are_found_by_name_and_by_number(browser: Client):
    session = chat("7001", title="Garden club")
    said(session, sender_id=PERSON, sender_name="木木")
    Bot.objects.create(self_id="10001", nickname="Frosty")
    endpoint = ModelEndpoint.objects.create(name="Deep", model="deep-9")
    ToolConfig.objects.create(name="get_weather")
    for query in ("garden", "club gard", "7001", "group:70"):
        (found,) = [hit for hit in hits(browser, query) if hit["kind"] == "chat"]
        assert found["values"]["subject"] == "onebot:10001:group:7001"
        assert found["url"] == f"/admin/agent/chatsession/{session.pk}/change/"
    for query in ("木", PERSON, PERSON[:4]):
        (found,) = hits(browser, query, kind="person")
        assert (found["label"], found["values"]["number"]) == ("木木", PERSON)
    assert of_kind(browser, "account", "frost") == ["Frosty"]
    (found,) = hits(browser, "deep-9", kind="endpoint")
    assert found["values"] == {"number": str(endpoint.pk), "subject": str(endpoint.pk)}
    assert of_kind(browser, "tool", "weath") == ["get_weather"]
    assert {"chat", "account"} <= {hit["kind"] for hit in hits(browser, "r")}


def test_known_values_are_named(browser: Client):
    said(chat("7001", title="Garden"), sender_id=PERSON, sender_name="木木")
    Bot.objects.create(self_id="10001", nickname="Frosty")
    for value in ("7001", "group:7001", "onebot:10001:group:7001"):
        assert of_kind(browser, "chat", known=[f"chat:{value}"]) == ["Garden"]
    assert of_kind(browser, "private", known=["private:7001"]) == []
    for value in (PERSON, f"onebot:10001/{PERSON}"):
        assert of_kind(browser, "person", known=[f"person:{value}"]) == ["木木"]
    asked = ["chat:onebot:10001:group:7001", "account:10001", "page:/admin/agent/manners/"]
    before = hits(browser, known=asked)
    assert set(asked) <= keys(before)
    assert of_kind(browser, "chat", known=["chat:7002"]) == []


def test_without_words_the_newest_are_offered(browser: Client):
    said(chat("7001", title="Garden"), sender_id=PERSON, sender_name="木木")
    Bot.objects.create(self_id="10001", nickname="Frosty")
    offered = {"chat": "Garden", "group": "Garden", "person": "木木", "account": "Frosty"}
    assert {kind: of_kind(browser, kind) for kind in offered} == {
        kind: [name] for kind, name in offered.items()
    }


def test_a_person_of_two_accounts_is_two_subjects_of_sums(browser: Client):
    for account in ("10001", "10002"):
        said(chat("700", account=account), sender_id=PERSON, sender_name="木木")
    assert len(hits(browser, "木", kind="person")) == 1
    subjects = hits(browser, "木", kind="person", takes="subject")
    assert {hit["values"]["subject"] for hit in subjects} == {
        f"onebot:10001/{PERSON}",
        f"onebot:10002/{PERSON}",
    }


@pytest.fixture
def owner(db: None) -> Client:
    """Of three chats among many."""
    client = logged_in("chat_owner")
    user = client.session["_auth_user_id"]
    for number in range(30):
        session = chat(f"700{number}", title=f"Garden {number}")
        said(session, sender_id=f"2000{number}", sender_name=f"Gardener {number}")
        if number < 3:
            ChatGrant.objects.create(user_id=user, account="10001", chat=session.key)
    Bot.objects.create(self_id="10001", nickname="Garden bot")
    ModelEndpoint.objects.create(name="Garden model")
    ToolConfig.objects.create(name="garden_tool")
    return client


def test_an_owner_of_three_chats_finds_nothing_else(owner: Client):
    assert keys(hits(owner, "garden")) == {
        *(f"chat:onebot:10001:group:700{number}" for number in range(3)),
        *(f"person:2000{number}" for number in range(3)),
    }
    assert hits(owner, "7005") == hits(owner, "20005") == hits(owner, "20005", kind="person") == []
    for kind in ("account", "endpoint", "tool", "persona", "setting"):
        assert hits(owner, "garden", kind=kind) == []
    assert len(hits(owner, "garden", kind="people")) == len(hits(owner, kind="groups")) == 3
    assert hits(owner, "静音") == []
    asked = ["chat:7005", "person:20005", "tool:garden_tool", "page:/admin/agent/manners/"]
    assert not set(asked) & keys(hits(owner, known=asked))
    assert hits(owner, kind="chat", known=["chat:7005"]) == []
    text = page(owner, "/admin/search/?q=garden")
    assert "Garden 2" in text
    assert "Garden 5" not in text
    assert "Gardener 5" not in text


def test_nobody_is_answered_without_signing_in(db: None):
    assert Client().get(ADDRESS).status_code == 302
    User.objects.create_user("plain", password="x")
    outsider = Client()
    outsider.force_login(User.objects.get())
    assert outsider.get(ADDRESS).status_code == 302
    assert outsider.get("/admin/search/").status_code == 302


def test_only_reading_is_answered(browser: Client):
    assert browser.post(ADDRESS).status_code == 405
    assert "no-store" in browser.get(ADDRESS)["Cache-Control"]


STRANGE = [
    "",
    " ",
    "x" * 10_000,
    "y " * 5_000,
    "%",
    "\\",
    "'\"",
    "\0",
    "\ud800",
    "１２",
    ":",
    "group:",
]


def test_strange_words_are_no_fault(browser: Client):
    said(chat("700", title="z"))
    for given in STRANGE:
        query = given.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        hits(browser, query, known=["chat:" + query, "person", "tool:\0"])
    for kind in ("chat", "person", "setting", "tool", "nonsense"):
        hits(browser, "\0:'", kind=kind, known=["chat:\0"])
    page(browser, "/admin/search/?" + urlencode({"q": "\0:'"}))


def test_names_are_harmless_and_short(browser: Client):
    said(chat("700", title="名" * 200), sender_id=PERSON, sender_name=HOSTILE)
    said(chat("701"), sender_id="72000002", sender_name="n" * 500)
    (found,) = hits(browser, "onerror", kind="person")
    assert "\u202e" not in found["label"]
    assert [len(label) for label in of_kind(browser, "chat", "名名")] == [80]
    assert [len(label) for label in of_kind(browser, "person", "nnn")] == [80]
    text = page(browser, "/admin/search/?q=onerror")
    assert "<img" not in text
    assert "\u202e" not in text
    assert "<bdi>&lt;img" in text


def test_a_search_asks_four_queries_and_reads_few_chats(browser: Client):
    for number in range(40):
        said(chat(f"70{number}", title="Garden"), sender_id=f"2{number}", sender_name="Gardener")
    page(browser, f"{ADDRESS}?q=garden")
    with CaptureQueriesContext(connection) as queries:
        page(browser, f"{ADDRESS}?q=garden")
    tables = ("agent_chatsession", "agent_message", "agent_modelendpoint")
    own = [one["sql"] for one in queries if any(f'FROM "{name}"' in one["sql"] for name in tables)]
    assert len(own) <= 4, own
    assert len(of_kind(browser, "chat", "garden")) == 20


def test_the_button_is_a_link_to_a_page_that_needs_no_script(browser: Client):
    text = page(browser, "/admin/")
    assert 'id="search-opener" href="/admin/search/"' in text
    chat("700", title="Garden")
    assert "Garden" in page(browser, "/admin/search/?q=gard")
    assert "Nothing is called that." in page(browser, "/admin/search/?q=nonsensical")


#: How fields are called that hold ids of what somebody may know by name; a bot's own is its own.
NAMES_OF_IDS = re.compile(
    r"(.*_)?(people|persons?|users?|user_id|owners?|owner_id|peer_id|allowed_ids|set_by|mention"
    r"|chats?|groups?|sessions?|accounts?|tools?|subject)"
)


def test_every_field_of_ids_is_filled_in_by_name(rf: RequestFactory, browser: Client):
    request = rf.get("/")
    request.user, request.session = User.objects.get(), browser.session
    forms: list[Any] = [OwnersStepForm, PreviewForm]
    changed = [one for one in admin.site._registry.values() if one.has_change_permission(request)]
    forms += [pages.get_form(request, None) for pages in changed]
    typed = {
        (form.__name__, name): form().fields[name].widget.attrs
        for form in forms
        for name, field in form.base_fields.items()
        if isinstance(field, CharField | ChatField) and NAMES_OF_IDS.fullmatch(name)
    }
    assert len(typed) >= 20
    assert [name for name, attrs in typed.items() if "data-takes" not in attrs] == []


def test_a_choice_says_whose_ids_are_listed(browser: Client):
    said(chat("7001", title="Garden"), sender_id=PERSON, sender_name="木木")
    config = ToolConfig.objects.create(name="get_weather", parameter_names=["session"])
    text = page(browser, f"/admin/tools/toolconfig/{config.pk}/change/")
    assert 'data-choose-by="allowed"' in text.partition('name="allowed_ids"')[2].partition(">")[0]
    assert of_kind(browser, "people", "木") == of_kind(
        browser, "people", known=[f"people:{PERSON}"]
    )
    assert of_kind(browser, "groups", "gard") == of_kind(browser, "groups", known=["groups:7001"])
    assert of_kind(browser, "everyone", "gard") == []


def say_once_each(first: Message, people: int) -> None:
    """``first`` again by each further person, in the chats by turns."""
    own = {"id", "session_id", "sender_id", "sender_name"}
    same = [f'"{one.column}"' for one in Message._meta.concrete_fields if one.column not in own]
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted"
            f" WHERE n < {people - 1}), chats AS (SELECT min(id) AS first, count(*) AS many"
            " FROM agent_chatsession) INSERT INTO agent_message"
            f" (session_id, sender_id, sender_name, {', '.join(same)})"
            f" SELECT chats.first + n % chats.many, '2' || n, '人 ' || n, {', '.join(same)}"
            f" FROM counted, chats, agent_message AS said WHERE said.id = {first.pk}"
        )


@pytest.mark.slow
def test_one_among_many_is_found(browser: Client):
    now, people = timezone.now(), 50_000
    chats = ChatSession.objects.bulk_create(
        ChatSession(
            kind="group", peer_id=f"7{n}", account="10001", title=f"群 {n}", last_message_at=now
        )
        for n in range(3_000)
    )
    say_once_each(said(chats[0], sender_id="20", sender_name="人 0"), people)
    assert of_kind(browser, "chat", "群 29")[0] == "群 29"
    assert of_kind(browser, "person", "人 12345") == ["人 12345"]
    assert of_kind(browser, "person", "人 4999")[0] == "人 4999"
    assert of_kind(browser, "person", "20")[0] == "人 0"
    for query in ("", "人", "群", "7", "2"):
        hits(browser, query)
    assert len(of_kind(browser, "chat", "群")) == len(of_kind(browser, "person", "人")) == 20
