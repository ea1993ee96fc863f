"""The pages of personas: what they accept, what is on record of them, and where they answer."""

import re
from typing import Any

import pytest
from django.test import Client

from agent.models import EndpointChoice, ModelEndpoint, Persona, PersonaChoice
from agent.record.settings.personas import load_persona_table
from onebot.models import Bot
from tests.admin.record import chat, logged_in, page, refused
from tests.agent.talk import GROUP
from tools.models import ToolConfig, ToolConfigChange

PERSONAS = "/admin/agent/persona/"


@pytest.fixture(autouse=True)
def default(db: None) -> Persona:
    return Persona.objects.get_or_create(name="default", is_default=True)[0]


def form(*places: Any, choices: tuple[dict[str, Any], ...] = (), **fields: Any) -> Any:
    sent: dict[str, Any] = {
        "name": "sage",
        "enabled": "on",
        "kind": "persona",
        "tool_choice": "all",
    }
    sent |= {"mention": "unknown", "quote": "unknown"}
    for prefix, rows in (("choices", choices), ("places", places)):
        sent |= {f"{prefix}-TOTAL_FORMS": len(rows), f"{prefix}-INITIAL_FORMS": 0}
        sent |= {
            f"{prefix}-{number}-{name}": value
            for number, row in enumerate(rows)
            for name, value in row.items()
        }
    return sent | fields


def save(browser: Client, row: Any = None, *places: Any, **fields: Any) -> str:
    """What the page says against it; "" when it was saved."""
    address = f"{PERSONAS}{row.pk}/change/" if row else f"{PERSONAS}add/"
    return refused(browser, address, form(*places, **fields))


def revert(browser: Client, row: Persona) -> str:
    change = ToolConfigChange.objects.latest("id")
    answer = browser.post(f"{PERSONAS}{row.pk}/revert/{change.pk}/", follow=True)
    row.refresh_from_db()
    return answer.content.decode()


def test_examples_are_written_as_lines(browser: Client):
    lines = "用户：你好\n你：哟\n\nUser: how are you\nand the dog?\nBot: fine"
    assert save(browser, examples=lines) == ""
    row = Persona.objects.get(name="sage")
    assert row.examples == [["你好", "哟"], ["how are you\nand the dog?", "fine"]]
    assert "用户：how are you" in page(browser, f"{PERSONAS}{row.pk}/change/")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("你好\n你：哟", "Line 1: begin with"),
        ("用户：你好\n用户：喂\n你：哟", "Line 1: an answer is missing"),
        ("用户：你好\n你：哟\n你：哟", "Line 3: a line of the user"),
        ("User: hi\nBot:", "Line 2: nothing is said"),
    ],
)
def test_a_wrong_example_is_named_with_its_line(browser: Client, lines: str, fault: str):
    assert fault in save(browser, examples=lines)


def test_what_an_agent_lacks_is_said_at_its_field(browser: Client):
    assert "An agent needs one" in save(browser, kind="agent")
    agent = {"kind": "agent", "description": "d", "as_tool": "on"}
    assert "needs the name of a tool" in save(browser, **agent, name="诗人")
    assert "There is a tool of this name" in save(browser, **agent, name="send_message")
    ToolConfig.objects.create(name="mine", provider_name="mcp")
    assert "There is a tool of this name" in save(browser, **agent, name="mine")
    assert save(browser, **agent, name="poet") == ""


def test_tools_that_there_are_not_are_named(browser: Client):
    assert "no such tools: gone_one" in save(browser, tools="get_weather\ngone_one")


def test_the_default_persona_shows_the_environment_and_cannot_go(
    browser: Client, default: Persona, settings: Any
):
    settings.SYSTEM_PROMPT, settings.MAX_ITERATIONS = "You are from the file.", 7
    text = page(browser, f"{PERSONAS}{default.pk}/change/")
    assert "holds: You are from the file." in text
    assert "holds: 7" in text
    assert "Only for an agent" not in text
    assert browser.post(f"{PERSONAS}{default.pk}/delete/", {"post": "yes"}).status_code == 403
    fields = {"name": "default", "kind": "agent", "enabled": ""}
    save(browser, default, **fields)
    default.refresh_from_db()
    assert (default.enabled, default.kind) == (True, "persona")


def test_a_template_that_names_nothing_is_saved_with_a_warning(browser: Client):
    assert save(browser, prompt="You like {food} and {tool:nowhere}.") == ""
    text = page(browser, f"{PERSONAS}{Persona.objects.get(name='sage').pk}/change/")
    assert "each chat has of its own: {food}" in text
    assert "tools that there are not: {tool:nowhere}" in text


def test_places_and_endpoints_are_on_record_and_taken_back(browser: Client):
    endpoint = ModelEndpoint.objects.create(name="Deep")
    row = Persona.objects.create(name="sage")
    place = {"chat_kind": "group", "peer_id": "700"}
    choice = {"role": "chat", "position": 1, "endpoint": endpoint.pk}
    assert save(browser, row, place, choices=(choice,), prompt="new") == ""
    change = ToolConfigChange.objects.get()
    assert change.author is not None
    assert set(change.after) == {"prompt", "places", "choices"}
    text = page(browser, f"{PERSONAS}{row.pk}/change/")
    assert "Model endpoint: Deep" in text.replace("model endpoint", "Model endpoint")
    assert "700" in text.partition('id="changes"')[2]
    assert "Taken back" in revert(browser, row)
    assert (row.prompt, row.places.count(), row.choices.count()) == ("", 0, 0)
    assert "Taken back" in revert(browser, row)
    assert (row.prompt, row.places.get().peer_id) == ("new", "700")
    assert row.choices.get().endpoint == endpoint


def test_what_cannot_be_taken_back_any_more_is_said(browser: Client):
    endpoint = ModelEndpoint.objects.create(name="Deep")
    row = Persona.objects.create(name="sage")
    EndpointChoice.objects.create(persona=row, role="chat", endpoint=endpoint)
    gone = {"choices-INITIAL_FORMS": 1, "choices-TOTAL_FORMS": 1, "choices-0-DELETE": "on"}
    pk = EndpointChoice.objects.get().pk
    gone |= {"choices-0-id": pk, "choices-0-persona": row.pk, "choices-0-role": "chat"}
    assert (
        save(browser, row, **gone, **{"choices-0-endpoint": endpoint.pk, "choices-0-position": 1})
        == ""
    )
    endpoint.delete()
    assert "endpoints by role" in revert(browser, row).lower()
    assert not EndpointChoice.objects.exists()


def test_two_personas_cannot_answer_in_one_place(browser: Client):
    place = {"account": "10001", "chat_kind": "group", "peer_id": "700"}
    assert save(browser, None, place) == ""
    assert "Here sage answers already" in save(browser, None, place, name="other")
    assert "Say whether" in save(browser, None, {"peer_id": "7"}, name="other")


def test_the_second_operator_sees_the_place_that_the_first_has_added(browser: Client):
    row = Persona.objects.create(name="sage")
    text = page(browser, f"{PERSONAS}{row.pk}/change/")
    seen = re.search(r'name="row_seen" value="(\w+)"', text)
    assert seen
    PersonaChoice.objects.create(persona=row, account="10001")
    assert "Somebody else has saved" in save(browser, row, prompt="mine", row_seen=seen[1])
    row.refresh_from_db()
    assert row.prompt == ""


def test_a_place_that_somebody_else_has_changed_meanwhile_is_not_overwritten(browser: Client):
    row = Persona.objects.create(name="sage")
    place = PersonaChoice.objects.create(persona=row, account="10001")
    address = f"/admin/agent/personachoice/{place.pk}/change/"
    seen = re.search(r'name="row_seen" value="(\w+)"', page(browser, address))
    assert seen
    PersonaChoice.objects.filter(pk=place.pk).update(account="10002")
    sent = {"persona": row.pk, "account": "10003", "row_seen": seen[1]}
    assert "Somebody else has saved" in browser.post(address, sent).content.decode()
    assert PersonaChoice.objects.get().account == "10002"


def test_chat_and_bot_pages_show_who_answers_and_lead_to_another(browser: Client, default: Persona):
    session, row = chat(), Persona.objects.create(name="sage")
    bot = Bot.objects.create(self_id="10001")
    text = page(browser, f"/admin/agent/chatsession/{session.pk}/change/?panel=chat")
    assert f"/admin/agent/persona/{default.pk}/change/" in text
    assert 'name="persona"' in text
    sent = {"persona": row.pk, "account": "10001", "chat_kind": "group", "peer_id": "700"}
    assert browser.post("/admin/agent/personachoice/add/", sent).status_code == 302
    assert ToolConfigChange.objects.get(kind="changed").subject == f"agent.persona:{row.pk}"
    assert load_persona_table().find(GROUP, "1").name == "default"
    assert "sage" in page(browser, f"/admin/agent/chatsession/{session.pk}/change/")
    assert "(1)" in page(browser, f"/admin/onebot/bot/{bot.pk}/change/")


def test_a_viewer_changes_nothing(browser: Client):
    row = Persona.objects.create(name="sage")
    client = logged_in("viewer")
    assert client.get("/admin/agent/personachoice/add/").status_code == 403
    assert client.post(f"{PERSONAS}{row.pk}/change/", form()).status_code == 403
    assert client.post(f"{PERSONAS}add/", form()).status_code == 403


def test_only_roles_that_have_an_effect_are_offered(browser: Client, default: Persona):
    agent = Persona.objects.create(name="helper", kind="agent", description="d")
    words = {
        "new": page(browser, "/admin/agent/persona/add/"),
        "default": page(browser, f"/admin/agent/persona/{default.pk}/change/"),
        "agent": page(browser, f"/admin/agent/persona/{agent.pk}/change/"),
    }
    offered = {who: 'value="embedding"' in html for who, html in words.items()}
    assert offered == {"new": False, "default": True, "agent": False}
    assert 'value="timing"' in words["new"]
    assert 'value="timing"' not in words["agent"]
