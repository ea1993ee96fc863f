"""What a step really sent: the endpoint, the set of tools once, what it cost, and who was asked in
vain."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agent.domain.endpoint import Endpoint, TokenPrices
from agent.llm.requests.base import Attempt, SentRequest
from agent.models import ModelEndpoint, Step, ToolOffer
from agent.record.runs.steps import NewStep, OfferCache, record_steps
from tests.agent.record.test_runs import begun

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = [{"name": "f", "description": "d", "parameters_schema": {"z": 1, "a": 2}}]


def asked(endpoint: Endpoint, **fields: Any) -> Step:
    """A recorded step that asked ``endpoint``."""
    run, _ = begun()
    sent = SentRequest(endpoint, TOOLS, {"top_p": 1.0, "a": 2})
    record_steps([NewStep(run.run_pk, 1, [], ["f"], {}, sent=sent, **fields)])
    return Step.objects.select_related("run", "offer").get()


def test_a_step_says_whom_it_asked_how_and_what_it_cost():
    prices = TokenPrices(input=1, currency="CNY")
    step = asked(Endpoint("u", name="main", model="m", prices=prices), cost_nano=5, rest={"id": 1})
    assert (step.endpoint_name, step.model, step.cost_nano, step.currency) == (
        *("main", "m"),
        *(5, "CNY"),
    )
    assert (step.parameters, step.response_rest) == ('{"top_p":1.0,"a":2}', {"id": 1})
    assert (step.sent, step.run.persona, step.run.config_version) == (None, "default", 0)


def test_who_was_asked_in_vain_is_on_record():
    step = asked(Endpoint("u"), attempts=(Attempt("first", "m1", "down", 12),))
    assert step.attempts == [
        {"endpoint": "first", "model": "m1", "reason": "down", "milliseconds": 12}
    ]


def test_an_endpoint_that_was_deleted_while_it_answered_keeps_its_name_on_record():
    row = ModelEndpoint.objects.create(name="gone")
    pk = row.pk
    assert asked(Endpoint("u", pk=pk, name="gone")).endpoint_id == pk
    Step.objects.all().delete()
    row.delete()
    step = asked(Endpoint("u", pk=pk, name="gone"))
    assert (step.endpoint_id, step.endpoint_name) == (None, "gone")


def test_a_known_set_of_tools_costs_no_statement_and_an_equal_one_no_row():
    offers = OfferCache()
    first = offers.find(TOOLS)
    with CaptureQueriesContext(connection) as queries:
        assert offers.find(TOOLS) == first
    assert len(queries) == 0
    assert OfferCache().find([dict(TOOLS[0])]) == first
    assert ToolOffer.objects.get().definitions == [
        '{"name":"f","description":"d","parameters_schema":{"z":1,"a":2}}'
    ]


def test_a_set_whose_transaction_was_rolled_back_is_not_remembered():
    offers = OfferCache()
    with transaction.atomic():
        offers.find(TOOLS)
        transaction.set_rollback(True)
    assert offers.find(TOOLS) == ToolOffer.objects.get().pk
