"""Endpoints on record: read as the agent uses them, and what is learnt of them."""

from typing import Any

import pytest
from django.db import connection

from agent.domain.endpoint import Ability, ModelRole
from agent.llm.endpoints.endpoint_pool import EndpointTable
from agent.models import EndpointChoice, EndpointStatus, ModelEndpoint, Persona
from agent.record.settings.endpoints import (
    LearntRefusal,
    RefusedKey,
    StatusChange,
    load_endpoint_table,
    mirror_environment,
    save_factor,
    save_learnt,
    save_refused_key,
    save_status,
    save_window,
)
from tools.live_rows import ConfigVersion, LiveKind, kinds_of_deleted

pytestmark = pytest.mark.django_db


@pytest.fixture
def named(settings: Any) -> Any:
    settings.UPSTREAM_ENDPOINT, settings.MODEL_NAME = "http://up/v1", "big"
    settings.UPSTREAM_API_KEY, settings.VISUAL_MODEL_NAME = "sk-env", "eye"
    settings.CODER_ENDPOINT = ""
    ModelEndpoint.objects.all().delete()
    return settings


def models(table: EndpointTable, role: ModelRole) -> list[str]:
    return [one.model for one in table.resolve(role)]


def test_a_row_is_read_with_its_keys_its_parameters_and_prices():
    row = ModelEndpoint(name="a", base_url="http://a/v1", model="m", can_see=True)
    row.keys, row.headers = ["k1", "k2"], {"X-A": "b"}
    row.temperature, row.extra_body = 0.5, {"top_k": 3, "temperature": 0.1}
    row.price_input, row.learnt = "1.5", {"no_tools": {"at": "", "words": ""}}
    row.save()
    endpoint = load_endpoint_table().rows[row.pk]
    assert (endpoint.keys, endpoint.headers) == (("k1", "k2"), {"X-A": "b"})
    assert endpoint.parameters == {"temperature": 0.1, "top_k": 3}
    assert (endpoint.prices.input, endpoint.prices.output) == (1.5, None)
    assert endpoint.abilities == {Ability.CHAT, Ability.TOOLS, Ability.SEE}
    assert endpoint.refuses == {"no_tools"}
    assert endpoint.timeout_seconds == 120


def test_disabled_rows_are_left_out_and_the_default_persona_chooses():
    first, second, off = (
        ModelEndpoint.objects.create(name=name, model=name, enabled=name != "off")
        for name in ("first", "second", "off")
    )
    persona, _ = Persona.objects.get_or_create(is_default=True, defaults={"name": "d"})
    for place, endpoint in enumerate((off, second, first)):
        EndpointChoice.objects.create(
            persona=persona, role="timing", position=place, endpoint=endpoint
        )
    assert models(load_endpoint_table(), ModelRole.TIMING) == ["second", "first"]


def test_a_key_that_cannot_be_read_leaves_its_row_out():
    row = ModelEndpoint.objects.create(name="a", model="m", sealed_keys="sealed elsewhere")
    table = load_endpoint_table()
    assert row.pk not in table.rows
    assert "SECRET_KEY" in table.faults[row.pk]


def test_without_rows_the_environment_counts(named: Any):
    table = load_endpoint_table()
    assert models(table, ModelRole.CHAT) == ["big"]
    assert table.environment["UPSTREAM"].keys == ("sk-env",)


def test_the_environment_is_mirrored_once_and_followed(named: Any):
    mirror_environment()
    version = ConfigVersion.current()
    mirror_environment()
    assert ConfigVersion.current() == version
    named.MODEL_NAME = "bigger"
    mirror_environment()
    up = ModelEndpoint.objects.get(environment="UPSTREAM")
    assert (up.name, up.model, up.position, up.keys) == (".env: UPSTREAM", "bigger", 0, [])
    named.VISUAL_MODEL_NAME = ""
    assert models(load_endpoint_table(), ModelRole.VISION) == []


def test_a_mirror_that_another_process_adds_meanwhile_stays_the_only_one(named: Any):
    added: list[str] = []

    def add_too(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if sql.startswith("SELECT") and not added:
            added.append(".env: UPSTREAM")
            ModelEndpoint.objects.create(name=added[0], environment="UPSTREAM", model="big")
        return result

    with connection.execute_wrapper(add_too):
        mirror_environment()
    assert ModelEndpoint.objects.get(environment="UPSTREAM").name == added[0]


def test_a_mirror_has_its_key_from_the_environment_and_the_rest_from_its_row(
    named: Any,
):
    mirror_environment()
    ModelEndpoint.objects.filter(environment="UPSTREAM").update(can_see=True, timeout_seconds=7)
    table = load_endpoint_table()
    (endpoint,) = table.resolve(ModelRole.CHAT)
    assert (endpoint.url, endpoint.keys, endpoint.model) == ("http://up/v1", ("sk-env",), "big")
    assert endpoint.timeout_seconds == 7
    assert models(table, ModelRole.VISION) == ["eye", "big"]
    ModelEndpoint.objects.filter(environment="UPSTREAM").update(enabled=False)
    assert models(load_endpoint_table(), ModelRole.CHAT) == []


def test_what_is_learnt_is_kept_once_and_all_processes_get_to_know():
    row = ModelEndpoint.objects.create(name="a", model="m")
    settings = ConfigVersion.current()
    save_learnt(LearntRefusal(row.pk, "no_tools", "I cannot"))
    save_learnt(LearntRefusal(0, "x", ""))
    save_learnt(LearntRefusal(row.pk, "no_tools", "again"))
    assert ConfigVersion.current(LiveKind.LEARNT) == 1
    assert load_endpoint_table().rows[row.pk].refuses == {"no_tools"}
    save_factor(row.pk, 1.25)
    assert ConfigVersion.current(LiveKind.LEARNT) == 1
    save_window(row.pk, 4_096)
    save_window(row.pk, 1)
    row.refresh_from_db()
    assert (row.token_factor, row.window) == (1.25, 4_096)
    assert ConfigVersion.current(LiveKind.LEARNT) == 2
    assert ConfigVersion.current() == settings  # nobody has set anything
    assert row.learnt["no_tools"]["words"] == "I cannot"


def test_how_an_endpoint_fares_is_kept_while_its_row_is_there():
    row = ModelEndpoint.objects.create(name="a", model="m")
    save_status(StatusChange(row.pk, error="down"))
    save_status(StatusChange(0, error="gone"))
    for place in (1, 0):
        save_refused_key(RefusedKey(row.pk, place, "bad key"))
    status = EndpointStatus.objects.get()
    assert (status.error, status.refused_keys) == ("bad key", [0, 1])
    assert status.answered_at is None


def test_with_an_endpoint_all_that_referred_to_it_is_read_again():
    kinds = kinds_of_deleted(ModelEndpoint)
    assert kinds == [
        LiveKind.MANNERS,
        LiveKind.PERSONAS,
        LiveKind.ENDPOINTS,
        LiveKind.BUDGETS,
    ]
