"""An HTTP tool tried out from its page, against a real server."""

import json
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.admin.http_forms import TOOLS, broken_secret, secret, tool_form
from tests.admin.record import page
from tests.file_server import FileServer, redirects, sends
from tools.models import HttpTool, ToolConfigChange

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
JSON = "application/json"


@pytest.fixture(autouse=True)
def _own_machine_allowed(settings: Settings) -> None:
    settings.FETCH_ALLOW = ["127.0.0.1"]


def made(url: str, **fields: Any) -> HttpTool:
    usual: dict[str, Any] = {
        "name": "get_weather",
        "enabled": False,
        "description": "d",
        "parameters_schema": SCHEMA,
    }
    return HttpTool.objects.create(url=url, **usual | fields)


def tried(browser: Client, row: HttpTool, **arguments: str) -> str:
    response = browser.post(
        f"{TOOLS}{row.pk}/trial/", {f"argument-{name}": value for name, value in arguments.items()}
    )
    assert response.status_code == 200
    return response.content.decode()


def section(text: str, name: str) -> str:
    return text.partition(f'id="{name}"')[2].partition("</section>")[0]


def test_a_disabled_tool_is_tried_and_shows_request_and_answer(
    browser: Client, file_server: FileServer
):
    url = file_server.serve(
        "/weather/%E5%8C%97%E4%BA%AC",
        sends(json.dumps({"now": {"t": "12 度"}}).encode(), JSON, x_from="here"),
    )
    row = made(
        url.rpartition("/")[0] + "/{city}",
        query={"d": "{days}"},
        answer_kind="jsonpath",
        answer_path="$.now.t",
    )
    text = tried(browser, row, city="北京", days="2")
    assert "GET http://127.0.0.1" in section(text, "request")
    assert "/weather/%E5%8C%97%E4%BA%AC?d=2" in section(text, "request")
    assert "HTTP 200" in section(text, "result")
    assert "12 度" in section(text, "result")
    assert "x-from: here" in section(text, "answer")
    assert [request.target for request in file_server.requests] == [
        "/weather/%E5%8C%97%E4%BA%AC?d=2"
    ]


def test_secrets_are_sent_and_never_shown(browser: Client, file_server: FileServer):
    secret("key", "hush-hush/1", file_server.url)
    url = file_server.serve("/w", sends(b'{"you said": "hush-hush/1"}', JSON, x_echo="hush-hush/1"))
    headers = {"Authorization": "Bearer {secret:key}"}
    row = made(
        url,
        method="POST",
        headers=headers,
        query={"k": "{secret:key}"},
        body_kind="json",
        body='{"k": "{secret:key}"}',
    )
    text = tried(browser, row, city="x")
    assert file_server.requests[0].headers["authorization"] == "Bearer hush-hush/1"
    assert "Bearer ••••" in section(text, "request")
    assert "hush" not in text


def test_a_hostile_answer_cannot_break_the_page(browser: Client, file_server: FileServer):
    evil = b"<script>alert(1)</script>\x00\xff</pre>\xed\xa0\x80"
    url = file_server.serve("/w", sends(evil, "text/plain", x_evil="<img src=x onerror=alert(1)>"))
    text = tried(browser, made(url), city="x")
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)" in section(text, "answer")


@pytest.mark.parametrize(("status", "shown"), [(500, "HTTP 500"), (404, "HTTP 404")])
def test_a_refusal_is_shown_as_the_model_is_told(
    browser: Client, file_server: FileServer, status: int, shown: str
):
    text = tried(
        browser,
        made(file_server.serve("/w", sends(b"no such city", "text/plain", status=status))),
        city="x",
    )
    assert "badge-failed" in section(text, "result")
    assert shown in section(text, "result")
    assert "no such city" in section(text, "result")


def test_what_could_not_be_sent_says_why(
    browser: Client, file_server: FileServer, settings: Settings
):
    row = made(file_server.url + "/w")
    assert "Nothing was sent." in tried(browser, row)  # the city is missing
    settings.FETCH_ALLOW = []
    assert "不允许访问" in tried(browser, row, city="x")
    row.url = "nonsense"
    row.save()
    assert "http://" in section(tried(browser, row, city="x"), "result")
    assert file_server.requests == []


def test_a_redirect_to_a_private_address_is_not_followed(browser: Client, file_server: FileServer):
    text = tried(
        browser, made(file_server.serve("/w", redirects("http://10.0.0.1/admin"))), city="x"
    )
    assert "badge-failed" in section(text, "result")
    assert "不允许访问" in section(text, "result")


def test_a_secret_that_cannot_be_read_any_more_is_told(browser: Client, file_server: FileServer):
    key = broken_secret("key")
    row = made(file_server.url + "/w", headers={"A": "{secret:key}"})
    assert "can no longer be read" in page(browser, f"{TOOLS}{row.pk}/trial/")
    assert "Nothing was sent." in tried(browser, row, city="x")
    key.value = "new"
    key.save()
    assert "can no longer be read" not in page(browser, f"{TOOLS}{row.pk}/trial/")


def test_arguments_that_are_no_json_are_a_form_error(browser: Client, file_server: FileServer):
    row = made(
        file_server.url + "/w",
        parameters_schema={"type": "object", "properties": {"list": {"type": "array"}}},
    )
    assert "Enter a valid JSON." in tried(browser, row, list="[1")
    assert file_server.requests == []


def test_a_tool_without_arguments_is_sent_at_once(browser: Client, file_server: FileServer):
    row = made(file_server.serve("/w", sends(b"fine", "text/plain")), parameters_schema={})
    assert "The tool takes no arguments." in page(browser, f"{TOOLS}{row.pk}/trial/")
    assert file_server.requests == []
    assert "fine" in section(tried(browser, row), "answer")


def test_a_trial_is_in_the_history_without_its_arguments(browser: Client, file_server: FileServer):
    tried(browser, made(file_server.serve("/w", sends(b"x", "text/plain"))), city="secret-place")
    assert ToolConfigChange.objects.get().words == "Test run: succeeded."


def test_saving_to_try_leads_to_the_trial(browser: Client, file_server: FileServer):
    response = browser.post(f"{TOOLS}add/", tool_form(url=f"{file_server.url}/w", _try="1"))
    assert response.headers["Location"] == f"{TOOLS}{HttpTool.objects.get().pk}/trial/"
