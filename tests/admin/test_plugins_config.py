"""The configuration of a plugin: a form made of its schema, faults at their fields, secrets that
never come out."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.admin.plugins import SCHEMA, address, configured, form, plugin
from tests.admin.record import page
from tools.models import Plugin, ToolConfigChange
from tools.plugins.rows import (
    decrypt_config,
    encrypt_config,
    is_encrypted,
    is_secret_schema,
    undecryptable_names,
)
from tools.secrets.encryption import DecryptionError

SECRET = "hunter2-swordfish"
WHOLE = {"city": "Paris", "key": SECRET}


def save(browser: Client, row: Plugin, **config: Any) -> str:
    """Send the form; "" where it was taken, otherwise the page that comes back."""
    response = browser.post(address(row), form(**config))
    row.refresh_from_db()
    return "" if response.status_code == 302 else response.content.decode()


def given(row: Plugin) -> dict[str, Any]:
    return decrypt_config(row.config, row.manifest["config_schema"])


def with_schema(**properties: Any) -> Plugin:
    return plugin(manifest={"config_schema": {"type": "object", "properties": properties}})


# --- The form -----------------------------------------------------------------------


def test_each_kind_of_value_is_read_as_its_schema_means_it(browser: Client):
    row = configured()
    more = {
        "days": "5",
        "ratio": "0.5",
        "loud": "true",
        "unit": '"F"',
        "tags": "a\n\n b \r\nc",
        "more": '{"depth": 2}',
    }
    assert save(browser, row, **WHOLE, **more) == ""
    assert given(row) == {
        **WHOLE,
        "days": 5,
        "ratio": 0.5,
        "loud": True,
        "unit": "F",
        "tags": ["a", "b", "c"],
        "more": {"depth": 2},
    }


def test_defaults_stand_in_the_form_and_for_what_is_not_given(browser: Client):
    row = configured()
    text = page(browser, address(row))
    assert 'name="config-days" value="3"' in text
    assert "Home town" in text
    assert "Where &lt;you&gt; are." in text
    save(browser, row, **WHOLE)
    assert given(row) == {**WHOLE, "days": 3, "loud": False, "unit": "C"}


def test_what_was_saved_is_shown_again(browser: Client):
    row = configured()
    save(browser, row, **WHOLE, tags="a\nb", unit='"F"', loud="true", more='{"depth": 1}')
    text = page(browser, address(row))
    assert 'value="Paris"' in text
    assert "a\nb</textarea>" in text
    assert '<option value="&quot;F&quot;" selected>' in text
    assert '<option value="true" selected>' in text
    assert "&quot;depth&quot;: 1" in text


PROBLEMS: list[tuple[dict[str, str], str]] = [
    ({"city": ""}, "The plugin needs this."),
    ({"city": "P"}, "At least 2 characters."),
    ({"city": "paris"}, "This has to match the pattern ^[A-Z]."),
    ({"days": "8"}, "Not more than 7."),
    ({"days": "0"}, "Not less than 1."),
    ({"days": "many"}, "Enter a whole number."),
    ({"ratio": "1"}, "Less than 1."),
    ({"ratio": "nan"}, "Enter a number."),
    ({"unit": '"K"'}, "Select a valid choice."),
    ({"tags": "a\na"}, "Nothing may be listed twice."),
    ({"tags": "toolong"}, "0: At most 5 characters."),
    ({"more": "{"}, "Enter a valid JSON."),
    ({"more": "[]"}, "This has to be: an object."),
    ({"more": "{}"}, "Needed in it: depth."),
    ({"more": '{"depth": "x"}'}, "depth: This has to be: a whole number."),
    ({"more": '{"$sealed": "x"}'}, "“$sealed” has a meaning of its own here."),
    ({"key": "abc"}, "At least 4 characters."),
    ({"key": ""}, "The plugin needs this."),
]


def test_a_problem_is_told_at_its_field_and_nothing_is_saved(browser: Client):
    row = configured()
    for config, problem in PROBLEMS:
        text = save(browser, row, **WHOLE | config)
        place = text.index(f'name="config-{next(iter(config))}"')
        assert problem in text[text.rindex('class="form-row errors"', 0, place) : place].replace(
            "&quot;", '"'
        )
        assert "errornote" in text
        assert (row.enabled, row.config) == (False, {})


def test_a_disabled_plugin_may_lack_what_it_needs_but_not_be_wrong(browser: Client):
    row = configured()
    assert save(browser, row, enabled=False, days="5") == ""
    assert row.config["days"] == 5
    assert "Not more than 7." in save(browser, row, enabled=False, days="8")


def test_a_plugin_whose_configuration_is_wrong_by_now_can_be_disabled_all_the_same(browser: Client):
    row = configured(enabled=True, config={"city": "x"})
    assert "At least 2 characters." in save(
        browser, row, city="x", days="3", loud="false", unit='"C"'
    )
    assert save(browser, row, enabled=False, city="x", days="3", loud="false", unit='"C"') == ""
    assert (row.enabled, row.config["city"]) == (False, "x")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense", "properties": {"a": {}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "https://example.com/x"}}},
        {"properties": {"a": {"$ref": "#"}}, "required": 5},
    ],
)
def test_a_schema_that_cannot_be_used_keeps_a_plugin_from_being_enabled(
    browser: Client, schema: Any
):
    row = plugin(manifest={"config_schema": schema})
    assert "cannot be used" in save(browser, row, a='"x"')
    assert not row.enabled


def test_an_emptied_text_or_list_is_empty_where_its_default_is_not(browser: Client):
    row = with_schema(
        greeting={"type": "string", "default": "hi"},
        names={"type": "array", "items": {"type": "string"}, "default": ["x"]},
    )
    save(browser, row, greeting="", names="")
    assert given(row) == {"greeting": "", "names": []}


def test_what_a_later_version_does_not_name_stays_in_the_row_and_is_not_given(browser: Client):
    row = configured(config={"old": 1})
    save(browser, row, **WHOLE)
    assert row.config["old"] == 1
    assert "old" not in given(row)


def test_a_plugin_without_a_schema_has_no_configuration(browser: Client):
    row = plugin()
    assert 'id="configuration"' not in page(browser, address(row))
    assert save(browser, row, anything="x") == ""
    assert row.config == {}


# --- Secrets ------------------------------------------------------------------------


def test_a_secret_is_sealed_and_on_no_page(browser: Client):
    row = configured()
    save(browser, row, **WHOLE, days="3", loud="false", unit='"C"')
    assert is_encrypted(row.config["key"])
    assert SECRET not in json.dumps(row.config)
    pages = [page(browser, address(row, end)) for end in ("change/", "history/")]
    pages += [
        save(browser, row, city="p", key=SECRET),
        *(f"{one.words} {one.name}" for one in ToolConfigChange.objects.all()),
    ]
    assert all(SECRET not in text and row.config["key"]["$sealed"] not in text for text in pages)
    assert "Configured: city, key." in pages[1]


def test_a_secret_is_kept_where_nothing_is_typed_replaced_or_taken_away(browser: Client):
    row = configured()
    save(browser, row, **WHOLE)
    assert "A secret is stored." in page(browser, address(row))
    assert save(browser, row, city="Rome", key="") == ""
    assert given(row)["key"] == SECRET
    save(browser, row, city="Rome", key="another")
    assert given(row)["key"] == "another"
    assert "The plugin needs this." in save(browser, row, city="Rome", **{"forget-key": "on"})
    assert save(browser, row, enabled=False, city="Rome", **{"forget-key": "on"}) == ""
    assert "key" not in row.config


def test_a_secret_that_cannot_be_read_any_more_is_asked_for_anew(
    browser: Client, settings: Settings
):
    row = configured()
    save(browser, row, **WHOLE)
    settings.SECRET_KEY = "another"
    browser.force_login(User.objects.get())
    assert "cannot be read any more: type it anew" in page(browser, address(row))
    assert "type it anew" in save(browser, row, city="Paris")
    assert save(browser, row, **WHOLE) == ""
    assert given(row)["key"] == SECRET


def test_a_text_that_a_later_version_calls_a_secret_is_shown_no_more_and_sealed_when_saved(
    browser: Client,
):
    row = configured(config={"city": "Paris", "key": SECRET})
    assert SECRET not in page(browser, address(row))
    assert save(browser, row, city="Paris") == ""
    assert is_encrypted(row.config["key"])
    assert given(row)["key"] == SECRET


def test_a_secret_that_a_later_version_calls_a_text_is_still_not_shown(browser: Client):
    row = with_schema(key={"type": "string"})
    Plugin.objects.update(config=encrypt_config({"key": SECRET}, SCHEMA))
    assert SECRET not in page(browser, address(row))
    save(browser, row)
    assert given(row)["key"] == SECRET


def test_an_object_with_a_secret_in_it_is_a_secret_and_written_as_json(browser: Client):
    row = with_schema(
        login={
            "type": "object",
            "properties": {
                "user": {"type": "string"},
                "password": {"type": "string", "writeOnly": True},
            },
        }
    )
    assert "Write this as JSON." in save(browser, row, login="{")
    assert "This has to be: an object." in save(browser, row, login="5")
    assert save(browser, row, login=json.dumps({"user": "a", "password": SECRET})) == ""
    assert given(row)["login"]["password"] == SECRET
    assert SECRET not in page(browser, address(row)) + json.dumps(row.config)


# --- What the host opens ------------------------------------------------------------


def test_the_plugin_is_given_what_its_schema_names_with_secrets_opened_and_defaults():
    config = encrypt_config({"city": "Paris", "key": SECRET, "old": 1}, SCHEMA)
    assert decrypt_config(config, SCHEMA) == {
        "city": "Paris",
        "key": SECRET,
        "days": 3,
        "loud": False,
        "unit": "C",
    }
    assert encrypt_config(config, SCHEMA) == config


@pytest.mark.parametrize(
    ("config", "schema"),
    [(None, SCHEMA), ([], None), ({"a": 1}, []), ({"a": 1}, {"properties": [1]})],
)
def test_what_is_no_configuration_is_none(config: Any, schema: Any):
    assert decrypt_config(config, schema) == (
        decrypt_config({}, SCHEMA) if schema is SCHEMA else {}
    )


def test_a_lost_secret_key_is_told_by_name(settings: Settings):
    config = encrypt_config(WHOLE, SCHEMA)
    settings.SECRET_KEY = "another"
    with pytest.raises(DecryptionError):
        decrypt_config(config, SCHEMA)
    assert undecryptable_names(config, SCHEMA) == ["key"]


@pytest.mark.parametrize(
    ("part", "secret"),
    [
        ({"writeOnly": True}, True),
        ({"type": "array", "items": {"format": "password"}}, True),
        ({"anyOf": [{"type": "null"}, {"format": "password"}]}, True),
        ({"writeOnly": False, "format": "email"}, False),
        ({"title": "password"}, False),
        (None, False),
    ],
)
def test_what_is_marked_anywhere_in_it_is_a_secret(part: Any, secret: bool):
    assert is_secret_schema(part) is secret
