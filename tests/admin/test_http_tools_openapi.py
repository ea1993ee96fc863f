"""The import of OpenAPI documents in the admin: from a document to rows that work."""

import base64
import json
import re
import zlib
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from tests.admin.http_forms import TOOLS, secret
from tests.admin.record import logged_in, page
from tests.file_server import FileServer, never_answers, sends
from tests.tools.http_tools.openapi_documents import PETSTORE, WEATHER
from tools.http_tools.admin.openapi import pack_document, unpack_document
from tools.http_tools.openapi.document import DocumentError
from tools.models import HttpTool, Secret, ToolConfig

IMPORT = f"{TOOLS}import/"
CURRENT, ALERTS = "GET /weather", "POST /alerts"


def sent(browser: Client, **form: Any) -> str:
    response = browser.post(IMPORT, form)
    assert response.status_code in (200, 302)
    return response.content.decode()


def read(browser: Client, text: str = WEATHER) -> dict[str, Any]:
    """What the page of choices would send of a document that was pasted, with its defaults."""
    shown = sent(browser, step="read", text=text)
    form = {
        name: re.search(f'name="{name}" value="([^"]*)"', shown)[1]  # type: ignore[index]
        for name in ("document", "source_url")
    }
    return form | {
        "server": re.search('name="server" value="([^"]*)"', shown)[1],  # type: ignore[index]
        "existing": "skip",
        "name_prefix": "",
    }


def test_a_pasted_document_becomes_tools(browser: Client):
    choice = read(browser) | {"operations": [CURRENT, ALERTS], "name_prefix": "owm_"}
    shown = sent(browser, step="choose", **choice)
    assert "https://api.weather.example/data/2.5/weather" in shown
    assert 'name="secret-owm_app_id"' in shown
    assert not HttpTool.objects.exists()
    sent(browser, step="make", **choice, **{"secret-owm_app_id": "hush-hush"})
    row = HttpTool.objects.get(name="owm_current_weather_data")
    assert row.query["appid"] == "{secret:owm_app_id}"
    assert (row.enabled, row.description) == (False, "当前天气")
    assert Secret.objects.get().value == "hush-hush"
    assert HttpTool.objects.count() == 2
    shown = page(browser, TOOLS)
    assert "Tools made: 2; replaced: 0; left out: 0." in shown
    assert "cannot be used" not in shown
    assert "hush" not in shown


def test_tools_can_be_made_before_their_secrets(browser: Client):
    sent(browser, step="make", **read(browser), operations=[CURRENT], enabled="on")
    assert HttpTool.objects.get().enabled
    assert not Secret.objects.exists()
    assert "cannot be used" in page(browser, TOOLS)


def test_a_pair_of_user_and_password_is_kept_as_it_is_sent(browser: Client):
    security = {
        "components": {"securitySchemes": {"login": {"type": "http", "scheme": "basic"}}},
        "security": [{"login": []}],
    }
    document = {
        "openapi": "3.0.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {"/x": {"get": {}}},
        **security,
    }
    sent(
        browser,
        step="make",
        **read(browser, json.dumps(document)),
        operations=["GET /x"],
        **{"secret-login": "a:b"},
    )
    assert base64.b64decode(Secret.objects.get().value) == b"a:b"
    assert HttpTool.objects.get().headers == {"Authorization": "Basic {secret:login}"}


def test_what_is_there_is_left_or_replaced(browser: Client):
    old = HttpTool.objects.create(
        name="current_weather_data", url="https://old.example/", cache_seconds=60, enabled=True
    )
    secret("app_id")
    choice = read(browser) | {"operations": [CURRENT]}
    assert "There already" in sent(browser, step="choose", **choice)
    sent(browser, step="make", **choice)
    assert HttpTool.objects.get().url == "https://old.example/"
    choice["existing"] = "replace"
    shown = sent(browser, step="choose", **choice)
    assert "replaces the one that is there" in shown
    assert "Used as they are:" in shown
    sent(browser, step="make", **choice)
    row = HttpTool.objects.get()
    assert (row.pk, row.url, row.cache_seconds) == (
        old.pk,
        "https://api.weather.example/data/2.5/weather",
        60,
    )
    assert row.enabled


def test_a_name_that_another_tool_has_gets_a_number(browser: Client):
    ToolConfig.objects.create(
        name="current_weather_data",
        provider_name="samples",
        declaration={"provider_type": "builtin"},
    )
    sent(browser, step="make", **read(browser), operations=[CURRENT])
    assert HttpTool.objects.get().name == "current_weather_data_2"


def test_what_cannot_be_made_is_listed_with_the_reason(browser: Client):
    choice = read(browser, PETSTORE) | {
        "operations": ["POST /pet/{petId}/uploadImage", "GET /pet/{petId}"]
    }
    shown = sent(browser, step="choose", **choice)
    [reason] = re.findall(r'<p class="failure words refused">(.*?)</p>', shown)
    assert "multipart/form-data" in reason
    sent(browser, step="make", **choice)
    assert [row.name for row in HttpTool.objects.all()] == ["get_pet_by_id"]


def test_the_list_is_searched_and_keeps_what_was_chosen(browser: Client):
    choice = read(browser, PETSTORE) | {"operations": ["PUT /pet"]}
    shown = sent(browser, step="choose", again="find", find="findbystatus", **choice)
    assert re.findall('name="operations" value="([^"]*)"', shown) == [
        "PUT /pet",
        "GET /pet/findByStatus",
    ]
    assert shown.count(" checked") >= 2
    assert "This field is required" not in shown


def test_a_document_is_uploaded_or_fetched(
    browser: Client, file_server: FileServer, settings: Settings
):
    settings.FETCH_ALLOW = ["127.0.0.1"]
    file = SimpleUploadedFile("petstore.yaml", PETSTORE.encode())
    assert "Swagger Petstore" in sent(browser, step="read", file=file)
    url = file_server.serve(
        "/docs/openapi.yaml",
        sends(PETSTORE.replace("https://{region}.petstore.example", "").encode()),
    )
    shown = sent(browser, step="read", url=url)
    assert f'value="{file_server.url}/api/v3"' in shown
    assert f'name="source_url" value="{url}"' in shown


def test_what_cannot_be_fetched_is_told(
    browser: Client, file_server: FileServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    assert "could not be fetched" in sent(browser, step="read", url=file_server.url + "/x")
    settings.FETCH_ALLOW = ["127.0.0.1"]
    assert "status 404" in sent(browser, step="read", url=file_server.url + "/x")
    monkeypatch.setattr("tools.http_tools.admin.openapi.FETCH_SECONDS", 0.2)
    assert "could not be fetched" in sent(
        browser, step="read", url=file_server.serve("/slow", never_answers())
    )
    assert "must begin with http" in sent(browser, step="read", url="file:///etc/passwd")


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({}, "Give the document in one of the three ways."),
        ({"text": "x", "url": "https://a.example/"}, "Give the document in one of the three ways."),
        ({"text": "{"}, "cannot be read as JSON"),
        ({"text": "swagger: '2.0'\npaths: {}"}, "Swagger 2"),
        ({"text": "a: &a [*a]"}, "contains itself"),
        ({"text": "[" * 100_000}, "levels deep"),
        ({"text": "- " * 100_000}, "levels deep"),
    ],
)
def test_a_bad_document_is_a_problem_on_the_page(
    browser: Client, form: dict[str, str], problem: str
):
    shown = sent(browser, step="read", **form)
    assert problem in shown
    assert 'name="document"' not in shown


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"operations": []}, "Choose at least one operation."),
        ({"operations": ["GET /nowhere"]}, "Select a valid choice"),
        ({"server": "own", "own_server": "nonsense"}, "must begin with http"),
        ({"name_prefix": "天气"}, "Letters, digits"),
    ],
)
def test_a_bad_choice_is_told_on_the_page(browser: Client, change: dict[str, Any], problem: str):
    assert problem in sent(
        browser, step="choose", **read(browser) | {"operations": [CURRENT]} | change
    )


def test_a_server_of_ones_own_is_taken(browser: Client):
    choice = read(browser) | {
        "operations": [CURRENT],
        "server": "own",
        "own_server": "http://192.168.3.4/w/",
    }
    assert "is not public" in sent(browser, step="choose", **choice)
    sent(browser, step="make", **choice | {"own_server": "https://mine.example/w/"})
    assert HttpTool.objects.get().url == "https://mine.example/w/weather"


def test_a_problem_in_a_secret_repeats_no_secret(browser: Client):
    shown = sent(
        browser,
        step="make",
        **read(browser),
        operations=[CURRENT],
        **{"secret-app_id": "hush\nhush"},
    )
    assert "control character" in shown
    assert "hush" not in shown
    assert not HttpTool.objects.exists()


NO_DOCUMENTS: list[str] = ["", "%%%", "eJwDAAAAAAE=", "a bomb"]


def test_a_page_that_sends_nonsense_is_told_to_begin_again(browser: Client):
    for text in NO_DOCUMENTS:
        if text == "a bomb":
            text = base64.b64encode(zlib.compress(b" " * 2**26, 9)).decode()
        with pytest.raises(DocumentError):
            unpack_document(text)
        assert 'name="text"' in sent(browser, step="make", document=text)


def test_a_document_goes_from_page_to_page_unchanged():
    document = {"openapi": "3.1.0", "paths": {"/天气": {"get": {}}}, "x": [1, None, 1.5]}
    assert unpack_document(pack_document(document)) == document


def test_hostile_words_cannot_break_the_pages(browser: Client):
    evil = '"><script>alert(1)</script>'
    operation = {
        "summary": evil,
        "tags": [evil],
        "parameters": [{"name": evil, "in": "query"}, {"name": evil, "in": "header"}],
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": evil},
        "servers": [{"url": f"https://a.example/{evil}"}],
        "paths": {f"/{evil}": {"get": operation}},
    }
    shown = sent(browser, step="read", text=json.dumps(document))
    choice = read(browser, json.dumps(document)) | {
        "operations": [f"GET /{evil}"],
        "server": "own",
        "own_server": "https://a.example",
    }
    assert "<script>alert" not in shown + sent(browser, step="choose", **choice)


def test_who_may_not_add_tools_imports_none(db: None):
    viewer, operator = logged_in("viewer"), logged_in("operator")
    assert (
        viewer.get(IMPORT).status_code == viewer.post(IMPORT, {"step": "make"}).status_code == 403
    )
    assert "/import/" not in page(viewer, TOOLS)
    assert IMPORT in page(operator, TOOLS)
    sent(operator, step="make", **read(operator), operations=[CURRENT], **{"secret-app_id": "v"})
    assert Secret.objects.count() == HttpTool.objects.count() == 1


def test_who_may_add_tools_and_no_secrets_is_told_which_are_missing(browser: Client):
    User.objects.update(is_superuser=False)
    user = User.objects.get()
    user.user_permissions.add(
        *Permission.objects.filter(
            codename__in=("add_httptool", "view_httptool", "view_every_chat")
        )
    )
    choice = read(browser) | {"operations": [CURRENT], "existing": "replace"}
    shown = sent(browser, step="choose", **choice)
    assert "to be entered by somebody who may:" in shown
    assert 'name="secret-' not in shown
    sent(browser, step="make", **choice, **{"secret-app_id": "v"})
    assert not Secret.objects.exists()
    HttpTool.objects.update(url="https://old.example/")
    sent(browser, step="make", **choice)
    assert HttpTool.objects.get().url == "https://old.example/"


def test_imported_tools_that_change_things_are_marked_and_ask_an_owner(browser: Client):
    document = {
        "openapi": "3.0.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {"/x": {"get": {}, "delete": {}, "put": {}}},
    }
    choice = read(browser, json.dumps(document)) | {"operations": ["GET /x", "DELETE /x"]}
    shown = sent(browser, step="choose", **choice)
    assert ">deletes<" in shown
    assert shown.count("Every call will wait for an owner") == 2  # also the one not chosen
    sent(browser, step="make", **choice)
    asked = {
        row.name: row.requires_approval for row in ToolConfig.objects.filter(name__contains="x")
    }
    row = HttpTool.objects.get(method="DELETE")
    assert asked.pop(row.name) == "always"
    assert "always" not in asked.values()


def test_importing_again_leaves_the_operators_choice(browser: Client):
    document = {
        "openapi": "3.0.0",
        "servers": [{"url": "https://a.example"}],
        "paths": {"/x": {"delete": {}}},
    }
    choice = read(browser, json.dumps(document)) | {"operations": ["DELETE /x"]}
    sent(browser, step="make", **choice)
    ToolConfig.objects.update(requires_approval="never")
    sent(browser, step="make", **choice | {"existing": "replace"})
    assert set(ToolConfig.objects.values_list("requires_approval", flat=True)) == {"never"}
