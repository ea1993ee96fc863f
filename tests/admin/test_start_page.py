"""The start page: what checks itself off, what can be entered, and who sees what."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import EndpointStatus, Manners, ModelEndpoint, Persona
from agent.record.settings.manners import load_manners_table
from frostproject.cockpit.check_desk import check_desk
from frostproject.doctor.checks import Check
from onebot.connections.handshake import refused_clients
from onebot.models import Bot
from tests.admin.endpoints import KEY, row
from tests.admin.record import chat, page, said
from tests.conftest import TOKEN
from tests.probed_model import reads_meter
from tests.scripted_model import ScriptedModel, fails
from tools.findings import Finding, FindingLevel

START = "/admin/start/"
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _fresh(settings: Any, db: None) -> Any:
    """Nothing is set up, also after a test that emptied the database."""
    settings.UPSTREAM_ENDPOINT = ""
    Persona.objects.get_or_create(is_default=True, defaults={"name": "default"})
    refused_clients.forget()
    yield
    refused_clients.forget()
    check_desk.forget()


def states(client: Client) -> dict[str, str]:
    return {step["name"]: step["state"] for step in client.get(START).context["steps"]}


def test_a_new_installation_has_all_to_do(browser: Client):
    assert set(states(browser).values()) == {"todo"}


def test_each_step_checks_itself_off(browser: Client):
    endpoint = row(can_chat=True)
    Bot.objects.create(self_id="10001", online=True, owners="20002")
    Persona.objects.filter(is_default=True).update(prompt="You are a cat.")
    said(chat(), state="answered")
    assert set(states(browser).values()) == {"done"}
    EndpointStatus.objects.create(
        pk=endpoint.pk, error="the endpoint answered 401: no", error_at=timezone.now()
    )
    Bot.objects.update(online=False)
    said(chat(peer_id="9"), state="failed", detail="retcode 1404")
    text = page(browser, START)
    assert states(browser) | {"persona": "", "owners": ""} == {
        "model": "wrong",
        "client": "wrong",
        "try": "wrong",
        "persona": "",
        "owners": "",
    }
    assert "refuses the key" in text
    assert "does not know this action" in text


def test_playgrounds_are_no_clients_but_an_answer_there_is_a_first_answer(browser: Client):
    account = "9000000000000007"
    Bot.objects.create(self_id=account, online=True)
    assert states(browser)["try"] == "todo"
    said(chat(account=account), state="answered")
    assert {states(browser)[name] for name in ("client", "owners")} == {"todo"}
    assert states(browser)["try"] == "done"
    assert "in the playground was answered. Try it again with a real client" in page(browser, START)


def test_an_answer_of_a_client_is_told_rather_than_one_in_a_playground(browser: Client):
    said(chat(), state="answered")
    said(chat("2", account="9000000000000007"), state="answered")
    text = page(browser, START)
    assert "was answered." in text
    assert "playground was answered" not in text


# --- The client -----------------------------------------------------------------


def test_the_token_is_shown_when_asked_for_and_only_by_post(browser: Client, settings: Any):
    settings.ONEBOT_ACCESS_TOKEN = token = "a-token-that-is-long"
    assert token not in page(browser, START)
    assert token not in page(browser, f"{START}?shown=1")
    shown = browser.post(f"{START}client/", {"client": "llbot", "shown": "1"}, headers=HTMX)
    assert token in shown.text
    assert "no-store" in shown["Cache-Control"]
    assert browser.get(f"{START}client/").status_code == 405


def test_who_may_not_change_bots_is_not_shown_the_token(db: None, settings: Any):
    settings.ONEBOT_ACCESS_TOKEN = token = "a-token-that-is-long"
    client = allowed("agent.add_modelendpoint", "agent.view_every_chat", "onebot.view_bot")
    answer = client.post(f"{START}client/", {"shown": "1"}, headers=HTMX)
    assert answer.status_code == 200
    assert token not in answer.text


@pytest.mark.parametrize("may_see", [True, False])
def test_a_clients_file_is_downloaded_with_the_token_for_some(browser, settings, may_see):
    viewer = allowed("agent.add_modelendpoint", "agent.view_every_chat", "onebot.view_bot")
    asked = {"download": "gensokyo", "where": "here"}
    answer = (browser if may_see else viewer).post(f"{START}client/", asked)
    assert answer["Content-Disposition"] == 'attachment; filename="config.yml"'
    assert (settings.ONEBOT_ACCESS_TOKEN in answer.text) == may_see


def test_a_refused_client_is_told_of_in_words(browser: Client):
    refused_clients.note("10.0.0.9", "the client presented a wrong access token")
    refused_clients.note("10.0.0.9", "there is no WebSocket at /<b>\u202e; use /ws/frostagent")
    text = page(browser, START)
    assert "A client at 10.0.0.9 was refused: It showed a wrong access token." in text
    assert "<b>" not in text.split("now-client")[1].split("</section>")[0].replace("<br>", "")
    assert "\u202e" not in text
    assert states(browser)["client"] == "wrong"


def test_the_live_part_comes_only_when_something_has_changed(browser: Client):
    first = browser.get(f"{START}live/")
    seen = first.context["seen"]
    assert browser.get(f"{START}live/", {"seen": seen}).status_code == 204
    Bot.objects.create(self_id="10001", online=True)
    changed = browser.get(f"{START}live/", {"seen": seen})
    assert "10001" in changed.text
    assert 'id="now-client"' in changed.text


def test_the_owners_of_an_account_that_connects_can_be_entered_at_once(browser: Client):
    known = browser.get(START).context["known_bots"]
    assert "owner-forms" not in browser.get(f"{START}live/", {"bots": known}).text
    Bot.objects.create(self_id="10001", online=True)
    changed = browser.get(f"{START}live/", {"bots": known}).text
    assert "Owners of 10001" in changed.split('id="owner-forms"')[1]


# --- The model ------------------------------------------------------------------


def test_a_model_that_answers_is_kept(browser: Client, model: ScriptedModel):
    model.answer_with(reads_meter)
    entered = {"preset": "other", "keys": KEY, "base_url": model.url, "model": "scripted"}
    answer = browser.post(f"{START}model/", entered, headers=HTMX)
    (made,) = ModelEndpoint.objects.filter(environment="")
    assert (made.model, made.keys) == ("scripted", [KEY])
    assert made.status.answered_at
    assert answer["HX-Trigger"] == "start:changed"
    assert KEY not in answer.text
    assert states(browser)["model"] == "done"


def test_where_no_model_is_named_the_provider_is_asked_for_its_models(
    browser: Client, model: ScriptedModel
):
    entered = {"preset": "other", "keys": KEY, "base_url": model.url}
    answer = browser.post(f"{START}model/", entered, headers=HTMX)
    assert "<option>scripted</option>" in answer.text
    model.answer_with(reads_meter)
    browser.post(f"{START}model/", entered | {"model": "scripted"}, headers=HTMX)
    assert ModelEndpoint.objects.get(environment="").model == "scripted"


def test_a_stored_model_is_tested_on_record(browser: Client, model: ScriptedModel):
    stored = row(base_url=model.url, can_chat=True)
    model.script([fails(402)])
    answer = browser.post(f"{START}model/", {"row": stored.pk}, headers=HTMX)
    assert "out of money" in answer.text
    assert states(browser)["model"] == "wrong"


def test_a_model_that_fails_is_not_kept_unless_that_is_wished(
    browser: Client, model: ScriptedModel
):
    model.script([fails(401)])
    entered = {"preset": "other", "keys": KEY, "base_url": model.url, "model": "scripted"}
    answer = browser.post(f"{START}model/", entered, headers=HTMX)
    assert "refuses the key" in answer.text
    assert KEY not in answer.text
    assert not ModelEndpoint.objects.filter(environment="").exists()
    browser.post(f"{START}model/", entered | {"anyway": "1"}, headers=HTMX)
    assert ModelEndpoint.objects.filter(environment="").count() == 1


@pytest.mark.parametrize(
    ("entered", "words"),
    [
        ({}, "Choose a provider"),
        ({"preset": "deepseek"}, "wants a key"),
        ({"preset": "nonsense", "keys": KEY, "model": "m"}, "nonsense"),
        ({"preset": "deepseek", "keys": "sk 中文"}, "key holds"),
        ({"preset": "other", "keys": KEY, "model": "m", "base_url": "ftp://x"}, "https://"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_kept(
    browser: Client, entered: dict[str, str], words: str
):
    answer = browser.post(f"{START}model/", entered, headers=HTMX)
    assert words in answer.text
    assert not ModelEndpoint.objects.filter(environment="").exists()


# --- Persona and owners ---------------------------------------------------------


def test_name_and_prompt_of_the_persona_are_saved_with_their_author(browser: Client):
    answer = browser.post(START, {"step": "persona", "name": "Mimi", "prompt": "You are a cat."})
    assert answer["Location"] == f"{START}#step-persona"
    assert Persona.objects.get(is_default=True).name == "Mimi"
    assert "Name and prompt" in page(browser, START)
    empty = browser.post(START, {"step": "persona", "name": "Mimi", "prompt": " "})
    assert "Write at least a sentence" in empty.text


def test_owners_are_numbers_and_count_for_their_account(browser: Client):
    bot = Bot.objects.create(self_id="10001", online=True)
    posted = {"step": "owners", "bot": bot.pk, "owners": "20002, 20003"}
    assert browser.post(START, posted).status_code == 302
    bot.refresh_from_db()
    assert bot.owner_ids == {"20002", "20003"}
    wrong = browser.post(START, posted | {"owners": "x" * 300})
    assert wrong.status_code == 200
    assert browser.post(START, posted | {"bot": "99"}).status_code == 404
    assert browser.post(START, {"step": "nothing"}).status_code == 404


# --- Who ------------------------------------------------------------------------


def allowed(*names: str) -> Client:
    user = User.objects.create_user("somebody", is_staff=True)
    for name in names:
        app, _dot, codename = name.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


@pytest.mark.parametrize("names", [(), ("onebot.change_bot",), ("agent.view_every_chat",)])
def test_who_sets_nothing_up_or_sees_single_chats_only_is_refused(db: None, names: Any):
    client = allowed(*names)
    for address in ("", "live/", "checks/"):
        assert client.get(START + address).status_code == 403
    for address in ("", "client/", "model/", "checks/"):
        assert client.post(START + address, {"shown": "1"}).status_code == 403


def test_a_step_needs_the_permission_of_its_rows(db: None, model: ScriptedModel):
    bot = Bot.objects.create(self_id="10001")
    client = allowed("agent.add_modelendpoint", "agent.view_every_chat")
    assert list(states(client)) == []
    persona = {"step": "persona", "name": "Mimi", "prompt": "You are a cat."}
    assert client.post(START, persona).status_code == 403
    assert client.post(START, {"step": "owners", "bot": bot.pk, "owners": "1"}).status_code == 403
    stored = row()
    assert client.post(f"{START}model/", {"row": stored.pk}).status_code == 403


def test_after_sign_in_an_unfinished_installation_leads_to_the_start_page(db: None):
    User.objects.create_superuser("root", "", "a long password")
    form = {"username": "root", "password": "a long password", "next": "/admin/"}
    assert Client().post("/admin/login/", form)["Location"] == START
    elsewhere = form | {"next": "/admin/agent/run/"}
    assert Client().post("/admin/login/", elsewhere)["Location"] == "/admin/agent/run/"
    row(can_chat=True)
    Bot.objects.create(self_id="10001")
    assert Client().post("/admin/login/", form)["Location"] == "/admin/"


# --- Checks ---------------------------------------------------------------------


def test_checks_are_begun_by_post_and_shown_with_what_to_do(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    found = Finding(FindingLevel.FAIL, "broken <b>", "mend it", "/admin/x/", "raw words")
    asked: list[str] = []

    def local_findings(url: str) -> Iterator[Finding]:
        asked.append(url)
        return iter([found])

    def outside_findings(_url: str) -> Iterator[Finding]:
        asked.append("outside")
        return iter([])

    local = Check("a", "Local", local_findings)
    outside = Check("b", "Outside", outside_findings, True)
    monkeypatch.setattr("frostproject.doctor.checks.CHECKS", (local, outside))
    assert "Local" not in page(browser, START)
    browser.post(f"{START}checks/", headers=HTMX)
    lot = check_desk.find(asks_others=False)
    assert lot is not None
    assert lot.done.wait(10)
    text = browser.get(f"{START}checks/", headers=HTMX).text
    assert "broken &lt;b&gt;" in text
    assert "mend it" in text
    assert "outside" not in asked
    assert TOKEN not in text


# --- A lively group -----------------------------------------------------------------


def make_lively(client: Client, wish: str) -> int:
    return client.post(START, {"step": "group", "lively": wish}).status_code


def test_one_button_makes_all_groups_lively_and_takes_it_back(browser: Client):
    group = ChatAddress("10001", "group", "30001")
    assert make_lively(browser, "on") == make_lively(browser, "on") == 302
    manners = load_manners_table().find(group)
    assert (manners.ambient_messages, manners.merge_seconds) == (20, 2.0)
    assert load_manners_table().find(replace(group, kind="private")).ambient_messages == 0
    assert "Take it back" in page(browser, START)
    assert make_lively(browser, "off") == 302
    assert load_manners_table().find(group).ambient_messages == 0
    assert make_lively(browser, "on") == 302
    assert Manners.objects.get().enabled


def test_lively_groups_without_what_draws_are_told_how_to_install_it(browser: Client, request):
    assert make_lively(browser, "on") == 302
    assert "make drawing" not in page(browser, START)
    request.getfixturevalue("without_drawing")
    assert "make drawing" in page(browser, START)
    assert make_lively(browser, "off") == 302
    assert "make drawing" not in page(browser, START)


def test_only_who_may_make_manners_makes_groups_lively(client: Client):
    user = User.objects.create_user("setter", password="x", is_staff=True)
    names = ("change_bot", "view_manners", "view_every_chat")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    assert make_lively(client, "on") == 403
    assert "Make groups lively" not in page(client, START)
    assert not Manners.objects.exists()
