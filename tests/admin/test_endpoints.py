"""The page of a model endpoint: what it takes, what it refuses, and what it never shows again."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from agent.models import EndpointStatus, ModelEndpoint
from tests.admin.endpoints import ADD, KEY, errors, form, page_of, row
from tests.admin.record import CHINESE, logged_in, page
from tools.models import ToolConfigChange
from tools.secrets.masked import MASK

LIST = "/admin/agent/modelendpoint/"


def test_a_key_and_a_provider_are_enough(browser: Client):
    given = {"preset": "deepseek", "base_url": "", "model": "deepseek-flash", "name": ""}
    assert errors(browser, **given, can_chat=None, can_tools=None, currency="") == {}
    saved = ModelEndpoint.objects.get()
    assert (saved.base_url, saved.name) == ("https://api.deepseek.com", "DeepSeek deepseek-flash")
    assert (saved.keys, saved.thinking, saved.currency) == ([KEY], "off", "CNY")
    assert saved.can_see
    assert saved.can_tools
    assert saved.price_input is not None
    assert saved.window


def test_what_was_seen_in_the_browser_is_saved_as_it_was(browser: Client):
    """The script has filled the form in, and the person has changed a mark."""
    given = {"preset": "deepseek", "model": "deepseek-flash", "filled": "1", "thinking": "on"}
    assert errors(browser, **given, price_input="9") == {}
    saved = ModelEndpoint.objects.get()
    assert (saved.can_see, saved.thinking, saved.price_output) == (False, "on", None)


def test_an_extra_body_of_spaces_is_none(browser: Client):
    assert errors(browser, extra_body=" \r\n") == {}
    assert ModelEndpoint.objects.get().extra_body == {}


def test_a_key_is_never_shown_again(browser: Client):
    saved = row(headers={"X-Gate": KEY})
    text = page(browser, page_of(saved)) + page(browser, LIST)
    assert KEY not in text
    assert f"{MASK} 1" in text
    assert f"X-Gate: {MASK}" in text


def test_keys_are_kept_added_and_taken_away_by_their_lines(browser: Client):
    saved = row(keys=["k-one", "k-two"])
    assert errors(browser, page_of(saved), keys=f"{MASK} 2\r\nk-new") == {}
    saved.refresh_from_db()
    assert saved.keys == ["k-two", "k-new"]
    assert errors(browser, page_of(saved), keys="") == {}
    saved.refresh_from_db()
    assert saved.keys == []


@pytest.mark.parametrize(
    ("pasted", "kept"),
    [
        (f"Bearer {KEY}", KEY),
        (f'"{KEY}"', KEY),
        (f"  “{KEY}” ", KEY),
        (f"Authorization: Bearer {KEY}", KEY),
        (f"OPENAI_API_KEY={KEY}", KEY),
    ],
)
def test_what_is_pasted_around_a_key_is_left_away(browser: Client, pasted: str, kept: str):
    assert errors(browser, keys=pasted) == {}
    assert ModelEndpoint.objects.get().keys == [kept]


ADDRESSES = [
    ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
    ("HTTPS://API.example.com/v1/ ", "https://api.example.com/v1"),
    ("https://api.example.com", "https://api.example.com"),
    ("https://api.example.com/v1/models", "https://api.example.com/v1"),
    ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
    ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434/v1"),
]


def test_addresses_are_saved_in_one_form(browser: Client):
    for entered, saved in ADDRESSES:
        assert errors(browser, base_url=entered) == {}
        assert ModelEndpoint.objects.get().base_url == saved
        ModelEndpoint.objects.all().delete()


BAD = [
    ({"base_url": "api.example.com/v1"}, "base_url", "begins with https://"),
    ({"base_url": "ftp://api.example.com"}, "base_url", "with nothing else"),
    ({"base_url": "https://api.exa mple.com"}, "base_url", "space or a line break"),
    ({"base_url": "https://api.example.com/\x07v1"}, "base_url", ""),
    ({"base_url": "https://me:pw@api.example.com"}, "base_url", "user or password"),
    ({"base_url": "https:///v1"}, "base_url", "names no host"),
    ({"base_url": "https://a.example:99999/v1"}, "base_url", "cannot be read"),
    ({"base_url": "https://api.anthropic.com/v1/messages"}, "base_url", "Anthropic"),
    ({"base_url": ""}, "base_url", "Choose a provider"),
    ({"model": ""}, "model", "Which model?"),
    ({"preset": "deepseek", "keys": ""}, "keys", "wants a key"),
    ({"keys": "sk-half-a-key\nand-the-rest"}, "keys", "broken over two"),
    ({"keys": "sk-half a-key"}, "keys", "no space"),
    ({"keys": "sk-密钥"}, "keys", "character that no key has"),
    ({"keys": f"{MASK} 7"}, "keys", "no stored key"),
    ({"headers": "no header"}, "headers", "Each line must be"),
    ({"headers": "Bad Name: x"}, "headers", "no name of a header"),
    ({"headers": '{"X": 1}'}, "headers", "no JSON object"),
    ({"headers": "Host: elsewhere"}, "headers", "by the program itself"),
    ({"extra_body": "[1]"}, "extra_body", "JSON object"),
    ({"extra_body": '{"messages": []}'}, "extra_body", "cannot stand here"),
    ({"extra_body": "{"}, "extra_body", ""),
    ({"extra_body": '{"seed": NaN}'}, "extra_body", "valid JSON"),
    ({"extra_body": '{"seed": [1e999]}'}, "extra_body", "valid JSON"),
    ({"price_input": "-1"}, "price_input", ""),
    ({"price_output": "cheap"}, "price_output", "number"),
    ({"price_output": "1", "currency": ""}, "currency", "In which currency"),
    ({"currency": "RMB!"}, "currency", ""),
    ({"window": "4096", "max_tokens": "4096"}, "max_tokens", "whole window"),
    ({"temperature": "3"}, "temperature", ""),
]


def test_what_is_wrong_is_said_at_its_field(browser: Client):
    for given, at, words in BAD:
        found = errors(browser, **given)
        assert list(found) == [at]
        assert words in found[at][0]
        assert not ModelEndpoint.objects.exists()


def test_a_stored_key_does_not_go_to_another_host(browser: Client):
    saved = row(headers={"X-Gate": KEY})
    kept = {"keys": f"{MASK} 1", "headers": f"X-Gate: {MASK}"}
    moved = {"base_url": "https://thief.example/v1"}
    assert set(errors(browser, page_of(saved), **moved, **kept)) == {"keys", "headers"}
    assert errors(browser, page_of(saved), **moved, keys="k-new", headers="") == {}
    saved.refresh_from_db()
    assert (saved.keys, saved.headers) == (["k-new"], {})


def test_a_stored_key_stays_when_the_path_changes(browser: Client):
    saved = row()
    assert (
        errors(browser, page_of(saved), base_url="https://api.example.com/v2", keys=f"{MASK} 1")
        == {}
    )
    saved.refresh_from_db()
    assert saved.keys == [KEY]


def test_an_effort_that_is_not_known_is_warned_of(browser: Client):
    given = {"preset": "deepseek", "model": "deepseek-flash", "effort": "medium"}
    text = browser.post(ADD, form(**given), follow=True).content.decode()
    assert "“high” is sent instead" in text


def test_what_the_environment_names_is_changed_there(browser: Client, settings: Settings):
    settings.UPSTREAM_ENDPOINT, settings.MODEL_NAME = "http://127.0.0.1:1/v1", "env-model"
    saved = row(
        environment="UPSTREAM", base_url="http://127.0.0.1:1/v1", model="env-model", keys=[]
    )
    text = page(browser, page_of(saved))
    assert "come from .env (UPSTREAM)" in text
    changed = {"base_url": "https://b.example/v1", "model": "x", "keys": "k", "window": "9000"}
    assert errors(browser, page_of(saved), **changed) == {}
    saved.refresh_from_db()
    assert (saved.base_url, saved.model, saved.keys) == ("http://127.0.0.1:1/v1", "env-model", [])
    assert saved.window == 9000
    assert browser.post(page_of(saved, "delete"), {"post": "yes"}).status_code == 403


def test_a_viewer_sees_neither_keys_nor_what_an_address_holds(db: None):
    saved = row(base_url=f"https://api.example.com/v1?key={KEY}", headers={"X-Gate": KEY})
    text = page(logged_in("viewer"), page_of(saved))
    assert KEY not in text
    assert "1 key" in text


def test_an_operator_names_public_addresses_alone(db: None, settings: Settings):
    operator = logged_in("operator")
    for private in ("http://127.0.0.1:9/v1", "http://169.254.169.254/v1", "http://[::1]:9/v1"):
        found = errors(operator, base_url=private)
        assert "only a superuser" in found["base_url"][0], private
    assert errors(operator, base_url="https://93.184.216.34/v1") == {}
    settings.FETCH_ALLOW = ["127.0.0.0/8"]
    assert errors(operator, base_url="http://127.0.0.1:9/v1", name="Second") == {}


def test_an_operator_may_use_the_place_that_the_environment_names(db: None, settings: Settings):
    settings.UPSTREAM_ENDPOINT = "http://127.0.0.1:9/v1"
    assert errors(logged_in("operator"), base_url="http://127.0.0.1:9/v1") == {}


def test_what_was_learnt_is_shown_and_forgotten(browser: Client):
    saved = row(learnt={"no_system": {"at": "2026-11-22T10:00", "words": "no <b>"}})
    text = page(browser, page_of(saved))
    assert "takes no system message" in text
    assert "no &lt;b&gt;" in text
    assert browser.get(page_of(saved, "forget")).status_code == 405
    assert browser.post(page_of(saved, "forget")).status_code == 302
    saved.refresh_from_db()
    assert saved.learnt == {}


def test_another_model_has_nothing_learnt_yet(browser: Client):
    saved = row(learnt={"no_tools": {}}, token_factor=2.0)
    assert errors(browser, page_of(saved), keys=f"{MASK} 1", model="m2") == {}
    saved.refresh_from_db()
    assert (saved.learnt, saved.token_factor) == ({}, 1.0)


def test_changes_are_on_record_without_keys(browser: Client):
    saved = row()
    assert errors(browser, page_of(saved), keys="k-new", window="8000") == {}
    change = ToolConfigChange.objects.get()
    assert change.after["window"] == 8000
    assert "k-new" not in str(change.after)
    assert KEY not in str(change.before)


def test_the_list_says_how_each_fares_and_what_for(browser: Client):
    saved = row(price_input="1.50", price_output="4", can_see=True)
    EndpointStatus.objects.create(endpoint=saved, error="401 <no>", error_at="2026-11-22T10:00Z")
    text = page(browser, LIST)
    for words in ("failed", "401 &lt;no&gt;", "¥1.50 / ¥4.00", "sees pictures", "chat", "m1"):
        assert words in text


def test_the_page_speaks_chinese(browser: Client):
    assert browser.get(ADD, headers=CHINESE).status_code == 200


@pytest.mark.parametrize("page_name", ["test", "models", "forget"])
def test_a_viewer_asks_nothing(page_name: str, db: None):
    assert logged_in("viewer").post(page_of(row(), page_name)).status_code == 403
    assert User.objects.count() == 1


def test_the_second_of_two_operators_sees_what_the_first_has_saved(browser: Client):
    saved = row()
    seen = browser.get(page_of(saved)).context["adminform"].form["row_seen"].value()
    kept = {"keys": f"{MASK} 1", "row_seen": seen}
    assert errors(browser, page_of(saved), **kept, window="8000") == {}
    assert "__all__" in errors(browser, page_of(saved), **kept, window="9000")
    saved.refresh_from_db()
    assert saved.window == 8000
