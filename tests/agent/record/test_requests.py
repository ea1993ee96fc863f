"""Requests made again from the record. That this works for what real runs send is checked when a
live server of the suite ends (:mod:`tests.rebuilt_requests`)."""

import json
from typing import Any

import pytest

from agent.domain.endpoint import Endpoint
from agent.llm.requests.base import SentRequest
from agent.llm.requests.messages import SPEAKER, ModelPicture, picture_part
from agent.models import Step
from agent.record.runs.requests import rebuild_request
from agent.record.runs.steps import NewStep, record_steps
from tests.agent.record.test_runs import begun
from tests.rebuilt_requests import _differing

pytestmark = pytest.mark.django_db
ME = Endpoint("http://me/v1", model="m")
TOOLS = [{"name": "f", "description": "", "parameters_schema": {"z": {}, "a": {}}}]


def recorded(*steps: dict[str, Any]) -> list[Step]:
    """The steps of a run on record that were sent to ``ME`` with one parameter."""
    run, _ = begun()
    usual: dict[str, Any] = {
        "tools": ["f"],
        "response": {},
        "sent": SentRequest(ME, TOOLS, {"top_p": 1.0}),
    }
    record_steps([NewStep(run.run_pk, at, **usual | one) for at, one in enumerate(steps, 1)])
    return list(Step.objects.order_by("number"))


def rebuilt(step: Step, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rebuild_request(step, **options) or b"null")
    return found


def test_a_request_holds_the_messages_of_all_steps_so_far_and_what_was_offered():
    said = {"role": "assistant", "content": "b", "thought": "x", SPEAKER: ME.speaker}
    steps = recorded({"request": [{"role": "user", "content": "a"}]}, {"request": [said]})
    assert rebuild_request(steps[1]) == (
        b'{"model":"m","messages":[{"role":"user","content":"a"},'
        b'{"role":"assistant","content":"b","thought":"x"}],"tools":[{"type":"function","function":'
        b'{"name":"f","description":"","parameters":{"z":{},"a":{}}}}],"top_p":1.0}'
    )


def test_a_step_of_the_timing_gate_stands_for_itself():
    steps = recorded({"request": [1], "phase": Step.Phase.TIMING}, {"request": [{"role": "user"}]})
    assert rebuilt(steps[1])["messages"] == [{"role": "user"}]


def test_what_was_left_out_for_an_endpoint_is_left_out_again():
    sent = SentRequest(ME, [], {}, [{"role": "user", "content": "short"}])
    (step,) = recorded({"request": [{"role": "user", "content": "long"}], "sent": sent})
    assert rebuilt(step) == {"model": "m", "messages": sent.messages}


def test_pictures_are_those_that_were_kept(tmp_path):
    (tmp_path / "p").write_bytes(b"picture")
    picture = ModelPicture("image/png", 7, tmp_path / "p")
    (step,) = recorded(
        {"request": [{"role": "user", "content": [picture_part("1"), picture_part("2")]}]}
    )
    shown, gone = rebuilt(step, album={"1": picture}.get)["messages"][0]["content"]
    assert shown["image_url"]["url"] == "data:image/png;base64,cGljdHVyZQ=="
    assert gone["type"] == "text"


def test_a_step_of_an_earlier_version_makes_no_request():
    (step,) = recorded({"request": [], "sent": None})
    assert rebuild_request(step) is None


def test_the_check_of_the_suite_finds_a_request_that_was_never_received():
    row = {"run_id": 1, "number": 1, "phase": "action", "request": "[]", "sent": None, "model": "m"}
    row |= {"parameters": '"{}"', "is_answered": 1, "definitions": None, "is_ours": 1}
    assert _differing([row], lambda _: None) == ['1.1: {"model":"m","messages":[]}']  # type: ignore[list-item]
