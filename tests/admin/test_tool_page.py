"""A tool's page: all its settings, what it declares of itself, and how it was used."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agent.admin.tools import CALL_LIMIT, load_tool_use, percentile
from agent.models import Step, ToolCall
from tests.admin.record import call_of, page, refused, run_for, step_of, tool_form
from tools.contract import ToolSpec
from tools.models import ToolConfig
from tools.registry.catalogue import ensure_tool_rows

TOOLS = "/admin/tools/toolconfig/"
DECLARATION = {
    "title": "Weather <now>",
    "icons": [{"src": "https://example.org/sun.png"}, {"src": "javascript:alert(1)"}],
    "parameters_schema": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where <b>"},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city"],
    },
    "output_schema": {"type": "object", "title": "Report"},
}


@pytest.fixture
def weather(db: None) -> ToolConfig:
    return ToolConfig.objects.create(
        name="get_weather", parameter_names=["city", "days"], declaration=DECLARATION
    )


def test_every_setting_is_saved_on_the_page(browser: Client, weather: ToolConfig):
    form = {
        "visibility": "hidden",
        "scope": "private",
        "allowed": "people",
        "allowed_ids": "1, 2",
        "calls_per_minute_person": 3,
    }
    form |= {
        "calls_per_minute_chat": 9,
        "parameter_descriptions": '{"city": "城市"}',
        "timeout_seconds": 7,
        "description": "d",
    }
    assert browser.post(f"{TOOLS}{weather.pk}/change/", tool_form(**form)).status_code == 302
    weather.refresh_from_db()
    assert {name: getattr(weather, name) for name in form} == form | {
        "parameter_descriptions": {"city": "城市"}
    }


WRONG: list[tuple[dict[str, object], str]] = [
    ({"allowed": "groups"}, "List at least one id"),
    ({"allowed_ids": "a!b"}, "is not an id"),
    ({"parameter_descriptions": '{"town": "x"}'}, "Known: city, days"),
    ({"parameter_descriptions": "{"}, "Enter a valid JSON."),
    ({"parameter_descriptions": "[" * 5000}, "Enter a valid JSON."),
    ({"parameter_descriptions": '{"city": ' + "9" * 5000 + "}"}, "Enter a valid JSON."),
    ({"calls_per_minute_chat": 10_001}, "less than or equal to 10000"),
    ({"scope": "moon"}, "Select a valid choice"),
]


def test_a_wrong_setting_is_refused_with_the_reason(browser: Client, weather: ToolConfig):
    for change, problem in WRONG:
        said = refused(browser, f"{TOOLS}{weather.pk}/change/", tool_form(**change))
        assert problem in said


def test_the_form_says_which_calls_need_approval(browser: Client, weather: ToolConfig):
    browser.post(f"{TOOLS}{weather.pk}/change/", tool_form(requires_approval="always"))
    weather.refresh_from_db()
    assert weather.requires_approval == "always"


def test_the_declaration_is_readable_and_harmless(browser: Client, weather: ToolConfig):
    text = page(browser, f"{TOOLS}{weather.pk}/change/")
    assert "Weather &lt;now&gt;" in text
    assert "where &lt;b&gt;" in text
    assert "<code>integer = 3</code>" in text
    assert "Report" in text
    assert 'src="https://example.org/sun.png"' in text
    assert "javascript:" not in text
    assert "Weather &lt;now&gt;" in page(browser, TOOLS)


@pytest.mark.parametrize(
    "schema", [{}, {"properties": []}, {"properties": {"a": 1}, "required": 2}, {"$defs": 1}]
)
def test_a_declaration_that_makes_no_sense_is_shown_all_the_same(browser: Client, schema: object):
    tool = ToolConfig.objects.create(name="t", declaration={"parameters_schema": schema})
    assert 'id="declaration"' in page(browser, f"{TOOLS}{tool.pk}/change/")
    assert 'class="tool trial"' in page(browser, f"{TOOLS}{tool.pk}/trial/")


# --- Use ------------------------------------------------------------------------


@pytest.fixture
def step(db: None) -> Step:
    return step_of(run_for())


def test_use_counts_calls_failures_and_durations_of_the_last_days(step: Step):
    for place in range(1, 101):
        call_of(
            step, position=place, duration_ms=place, state="failed" if place <= 7 else "succeeded"
        )
    call_of(step, position=101, duration_ms=9000, mocked=True)
    call_of(step, "other", position=102, duration_ms=9000)
    old = call_of(step, position=103, duration_ms=9000)
    ToolCall.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=8))
    use = load_tool_use("get_weather")
    figures = ("calls", "failures", "mocked", "p50", "p95", "is_capped")
    assert tuple(use[name] for name in figures) == (
        101,
        7,
        1,
        50,
        95,
        False,
    )


def test_use_looks_at_the_newest_calls_only_and_says_so(
    step: Step, django_assert_num_queries: DjangoAssertNumQueries
):
    rows = [
        ToolCall(run=step.run, step=step, position=n, tool_name="t", created_at=timezone.now())
        for n in range(CALL_LIMIT + 1)
    ]
    ToolCall.objects.bulk_create(rows)
    with django_assert_num_queries(1):
        use = load_tool_use("t")
    assert (use["calls"], use["is_capped"], use["p50"]) == (CALL_LIMIT, True, None)


@pytest.mark.parametrize(
    ("ordered", "p50", "p95"),
    [([], None, None), ([4], 4, 4), ([1, 2], 1, 2), (list(range(1, 21)), 10, 19)],
)
def test_a_percentile_is_one_of_the_values(ordered: list[int], p50: int | None, p95: int | None):
    assert (percentile(ordered, 50), percentile(ordered, 95)) == (p50, p95)


def test_the_page_shows_the_use_in_few_queries(
    browser: Client,
    weather: ToolConfig,
    step: Step,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    call_of(step, duration_ms=1234)
    page(browser, f"{TOOLS}{weather.pk}/change/")  # what Django remembers for good is asked here
    with django_assert_num_queries(9):  # the sign-in's four, zone, the row twice, calls, changes
        text = page(browser, f"{TOOLS}{weather.pk}/change/")
    assert "<dd>1234 ms</dd>" in text
    assert "/admin/agent/toolcall/?tool=get_weather" in text


@pytest.mark.parametrize(
    ("rule", "words"),
    [(True, "about every call"), (lambda arguments: True, "about some calls"), (False, "")],
)
def test_the_page_says_which_calls_the_tool_itself_wants_approved(
    browser: Client, rule: object, words: str
):
    ensure_tool_rows([ToolSpec(name="transfer", metadata={"requires_approval": rule})])
    text = page(browser, f"{TOOLS}{ToolConfig.objects.get().pk}/change/")
    assert ("asks an owner" in text) == bool(words)
    assert words in text
