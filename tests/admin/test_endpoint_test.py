"""*Test* and *Fetch models*: what an endpoint does is shown, on record, and explained when it
fails."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from agent.models import EndpointStatus, ModelEndpoint, Run, Step
from agent.pages.endpoints import throttle
from tests.admin.endpoints import ADD, KEY, form, page_of, row
from tests.admin.record import logged_in
from tests.file_server import FileServer, sends
from tests.live_server import free_port
from tests.probed_model import reads_meter
from tests.scripted_model import ScriptedModel, call, fails, returns, says

MODELS = "/admin/agent/modelendpoint/models/"
AS_JSON = {"accept": "application/json"}


@pytest.fixture(autouse=True)
def _unthrottled() -> Iterator[None]:
    yield
    throttle.forget()


def outcome_of(browser: Client, row: ModelEndpoint) -> str:
    response = browser.post(page_of(row, "test"))
    assert response.status_code == 200, response
    return response.content.decode()


def test_a_saved_endpoint_is_tested_at_once_and_the_test_is_on_record(
    browser: Client, model: ScriptedModel
):
    model.answer_with(reads_meter)
    sent = form(base_url=model.url, can_see="on", price_input="1", price_output="2", _test="x")
    text = browser.post(ADD, sent, follow=True).content.decode()
    for words in ("works", "It called the tool.", "used it in its answer", "colour", "¥0."):
        assert words in text
    run = Run.objects.get()
    assert (run.origin, run.state, run.model_calls) == ("test", "finished", 3)
    assert Step.objects.filter(run=run, endpoint=ModelEndpoint.objects.get()).count() == 3
    assert EndpointStatus.objects.get().answered_at is not None


def test_a_call_in_the_text_of_the_answer_is_named(browser: Client, model: ScriptedModel):
    written = json.dumps({"name": "read_meter", "arguments": {}})
    model.script([f"<tool_call>{written}</tool_call>", "It shows something."])
    text = outcome_of(browser, row(base_url=model.url))
    assert "as text; that is understood" in text
    assert "does not hold the number" in text
    assert "works in part" in text


FAULTS: list[tuple[list[Any], str]] = [
    ([fails(401)], "refuses the key"),
    ([fails(402)], "out of money"),
    ([returns(b"<html><title>Welcome</title>")], "web page"),
    ([returns({"type": "message", "content": []})], "another protocol"),
    ([call("read_meter"), fails(400)], "refused the tool"),
    ([says("hello")], "did not call the tool"),
]


@pytest.mark.parametrize(("answers", "words"), FAULTS)
def test_what_is_wrong_is_said_with_what_to_do(
    browser: Client, model: ScriptedModel, answers: list[Any], words: str
):
    model.script(answers)
    text = outcome_of(browser, row(base_url=model.url))
    assert words in text
    assert KEY not in text
    assert Run.objects.get().origin == "test"


def test_http_and_https_are_told_apart(browser: Client, model: ScriptedModel):
    text = outcome_of(browser, row(base_url=model.url.replace("http:", "https:")))
    assert "does not speak https" in text


def test_a_dead_port_is_said_to_be_one(browser: Client):
    text = outcome_of(browser, row(base_url=f"http://127.0.0.1:{free_port()}/v1"))
    assert "cannot be reached" in text
    assert "cannot be reached" in EndpointStatus.objects.get().error


def test_models_of_a_like_name_are_proposed(browser: Client, model: ScriptedModel):
    model.script([fails(404, message="The model `scriptd` does not exist")])
    text = outcome_of(browser, row(base_url=model.url, model="scriptd"))
    assert "<code>scripted</code>" in text


def test_several_are_tested_from_the_list(browser: Client, model: ScriptedModel):
    model.answer_with(reads_meter)
    rows = [row(name=name, base_url=model.url) for name in ("one", "two")]
    chosen = {"action": "test_selected", "_selected_action": [str(each.pk) for each in rows]}
    text = browser.post("/admin/agent/modelendpoint/", chosen).content.decode()
    assert text.count("used it in its answer") == 2


def test_tests_are_throttled(browser: Client, model: ScriptedModel):
    saved = row(base_url=model.url)
    with throttle.testing(saved.pk) as hindrance:
        assert hindrance == ""
        assert "under way already" in outcome_of(browser, saved)


def test_an_operator_does_not_ask_inside_the_network(db: None, model: ScriptedModel):
    assert "only a superuser" in outcome_of(logged_in("operator"), row(base_url=model.url))
    assert model.requests == []


def test_the_form_fetches_the_models_with_what_stands_in_it(browser: Client, model: ScriptedModel):
    sent = form(base_url=f"{model.url}/chat/completions", model="")
    response = browser.post(MODELS, sent, headers=AS_JSON)
    assert response.json() == {"models": [["scripted", 0]]}


def test_what_is_wrong_with_the_form_is_said_instead_of_a_list(browser: Client):
    response = browser.post(MODELS, form(base_url="nowhere", keys="a b"), headers=AS_JSON)
    assert response.status_code == 400
    assert set(response.json()["problems"]) == {"base_url", "keys"}


@pytest.fixture
def site() -> Iterator[FileServer]:
    with FileServer() as made:
        yield made


def fetched(browser: Client, url: str) -> dict[str, Any]:
    made: dict[str, Any] = browser.post(MODELS, form(base_url=url), headers=AS_JSON).json()
    return made


def test_what_is_no_list_of_models_is_a_sentence(browser: Client, site: FileServer):
    site.serve("/models", sends(b'{"hello": 1}', "application/json"))
    (lines,) = fetched(browser, site.url)["problems"].values()
    assert "no list of models" in " ".join(lines)


def test_ten_thousand_models_are_searched_on_a_page(browser: Client, site: FileServer):
    names = [{"id": f"m-{number}", "context_length": 4096} for number in range(12_000)]
    site.serve("/models", sends(json.dumps({"data": names}).encode(), "application/json"))
    assert len(fetched(browser, site.url)["models"]) == 10_000
    saved = row(base_url=site.url)
    text = browser.post(page_of(saved, "models")).content.decode()
    assert text.count('name="chosen"') == 100
    text = browser.post(page_of(saved, "models"), {"q": "M-77 7"}).content.decode()
    assert 'value="m-777"' in text
    assert browser.post(page_of(saved, "models"), {"chosen": "m-777"}).status_code == 302
    saved.refresh_from_db()
    assert saved.model == "m-777"


def test_a_fetched_page_needs_a_post(browser: Client, settings: Settings):
    saved = row()
    for name in ("models", "test"):
        assert browser.get(page_of(saved, name)).status_code == 405
