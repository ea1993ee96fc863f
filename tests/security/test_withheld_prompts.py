"""Prompts of personas and names of model endpoints, looked for by the owner of a single chat on
every page there is."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from agent.admin.runs import run_page
from agent.models import ChatSession, ModelEndpoint, Persona, PersonaChoice, Run, Step
from agent.record.waiting.trials import TrialWish
from tests.admin.record import answered, call_of, chat, said, step_of
from tests.security.two_chats import every_address, owner_of, refusals_drawn_once

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SECRET = "PROMPTSECRET: the manager is called OTHERBOSS"
SYSTEM, USER = {"role": "system", "content": SECRET}, {"role": "user", "content": "SAID-HERE"}
TOLD = {"role": "user", "content": f"{SECRET}\n\nSAID-HERE"}
PLACE = ("10001", "group:30001")


def endpoint(name: str) -> ModelEndpoint:
    return ModelEndpoint.objects.create(name=name, model=f"{name}-model", can_chat=True)


@pytest.fixture
def steps() -> list[Step]:
    """Of an answer in the chat: sent as it was made, and in the form of an endpoint that takes no
    system message, after two steps and after an endpoint that failed."""
    run: Any = answered(said(chat("30001"))).run
    answering, _other = endpoint("answering"), endpoint("OTHERNAME")
    attempt = {"endpoint": "OTHERNAME", "model": "OTHERNAME-model", "milliseconds": 5}
    attempt["reason"] = "OTHERNAME-model does not exist"
    Run.objects.update(model="OTHERNAME-model")  # the planned one
    kept: dict[str, Any] = {"parameters": "{}", "model": "m1", "endpoint": answering}
    return [
        step_of(run, 1, request=[SYSTEM, USER], attempts=[attempt], **kept),
        step_of(run, 2, request=[USER], sent=json.dumps([TOLD, USER]), **kept),
        step_of(run, 3, request=[USER], sent=json.dumps([SYSTEM, USER]), **kept),
    ]


def pages_of(browser: Client, steps: list[Step], begin: str = "/") -> str:
    """All that somebody can read in the admin about these steps, under addresses that begin so."""
    whole = [f"/admin/agent/run/{steps[0].run_id}/change/?whole={n}" for n in (1, 2, 3)]
    asked = [one for one in every_address() if re.match(begin, one)]
    with refusals_drawn_once():
        answers: list[Any] = [browser.get(one) for one in [*asked, *whole]]
    return "\n".join(
        b"".join(one.streaming_content).decode(errors="replace")
        if one.streaming
        else one.content.decode(errors="replace")
        for one in answers
    )


#: As they are on record of a run that failed; what is behind each is for who may see endpoints.
FAULTS = (
    "the endpoint answered 404: OTHERNAME-model does not exist",
    "OTHERNAME.lan said something new",
    "no answer from the model within 9 s\nthen: OTHERNAME.lan said something new",
    "The model “OTHERNAME-model” does as it likes",
)


def failed(fault: str, asked_in: ChatSession, other: ModelEndpoint) -> Step:
    message = said(asked_in, "SAID-HERE", state="failed", detail=fault)
    run: Any = answered(message, state="failed", detail=fault).run
    Run.objects.filter(pk=run.pk).update(state="failed", error=fault, model="OTHERNAME-model")
    asked: dict[str, Any] = {
        "endpoint": other,
        "endpoint_name": "OTHERNAME",
        "model": "OTHERNAME-model",
    }
    step = step_of(run, error=fault, **asked)
    call_of(step, state="failed", error=fault)
    return step


def test_no_page_shows_a_prompt_or_another_endpoint_to_a_chat_owner(steps, admin_client):
    """Not even to one who was given every other permission, and not in an error either, but one
    of a tool that names none is shown as it is."""
    persona = Persona.objects.create(name="ForOtherChat", prompt=SECRET, enabled=True)
    PersonaChoice.objects.create(persona=persona, chat_kind="group", peer_id="30002")
    ModelEndpoint.objects.filter(name="OTHERNAME").update(base_url="https://othername.lan/v1")
    other, own = ModelEndpoint.objects.get(name="OTHERNAME"), ChatSession.objects.get()
    faulty = [failed(fault, own, other) for fault in FAULTS]
    call_of(faulty[0], position=1, state="failed", error="the city Ruritania is not known")
    shown = pages_of(owner_of(PLACE, is_tempted=True), steps)
    for told in ("SAID-HERE", "answering", "the city Ruritania is not known"):
        assert told in shown
    for kept in ("PROMPTSECRET", "OTHERBOSS", "OTHERNAME", "OTHERNAME".lower(), "As recorded"):
        assert kept not in shown, shown[shown.index(kept) - 300 : shown.index(kept) + 100]
    plain = owner_of(PLACE)
    for step in faulty:
        address = f"/admin/agent/run/{step.run_id}/change/"
        page = plain.get(address).content.decode()
        assert 'class="failure words"' in page
        assert "OTHERNAME" not in page.upper()
        assert "OTHERNAME" in admin_client.get(address).content.decode()


def test_who_may_see_personas_sees_prompts_and_what_was_sent(steps, admin_client):
    address = f"/admin/agent/run/{steps[0].run_id}/change/"
    shown = admin_client.get(address).content.decode()
    assert "PROMPTSECRET" in shown
    assert "OTHERNAME-model does not exist" in shown
    assert admin_client.get(f"/admin/agent/step/{steps[0].pk}/request/").status_code == 200


def test_a_colleague_who_sees_every_chat_but_no_persona_sees_no_prompt(steps, django_user_model):
    user = django_user_model.objects.create_user("colleague", is_staff=True)
    wanted = ("view_every_chat", "view_run", "view_step", "view_message", "view_toolcall")
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    browser = Client()
    browser.force_login(user)
    shown = pages_of(
        browser, steps, "/admin/(agent/(run|step|message|toolcall|chatsession)/|[^/]*/$)"
    )
    assert "SAID-HERE" in shown
    assert "PROMPTSECRET" not in shown


def test_a_chat_owner_asks_again_by_names_and_no_endpoint_of_others(steps, monkeypatch):
    wishes: list[TrialWish] = []
    server = SimpleNamespace(ask_again=wishes.append)
    monkeypatch.setattr(run_page, "serving", SimpleNamespace(get_serving=lambda: server))
    persona = Persona.objects.create(name="sage", prompt=SECRET, enabled=True)
    mine, other = ModelEndpoint.objects.order_by("pk")
    browser, address = owner_of(PLACE), f"/admin/agent/run/{Run.objects.get().pk}/again/"
    assert "sage" in browser.get(address).content.decode()
    sent = {"persona": persona.pk, "endpoint": mine.pk}
    assert browser.post(address, sent).status_code == 302
    assert browser.post(address, sent | {"endpoint": other.pk}).status_code == 403
    assert browser.post(address, sent | {"persona": 4_711}).status_code == 403
    assert [(one.persona_pk, one.endpoint_pk) for one in wishes] == [(persona.pk, mine.pk)]
