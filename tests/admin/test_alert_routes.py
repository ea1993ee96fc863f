"""The pages of where alerts go."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from agent.domain.alerts import AlertLook
from agent.models import AlertRoute, Message
from tests import file_server as files
from tests.admin.record import logged_in

ADD = "/admin/agent/alertroute/add/"
FORM = {"name": "hook", "enabled": "on", "kind": "webhook", "address": "", "quiet_hours": ""}


def save(browser: Client, **values: Any) -> str:
    """The page after the form was sent; "" where the row was saved."""
    row = AlertRoute.objects.first()
    page = f"/admin/agent/alertroute/{row.pk}/change/" if row else ADD
    answer = browser.post(page, FORM | values)
    return "" if answer.status_code == 302 else answer.content.decode()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "Enter where alerts are to go."),
        ({"address": "ftp://a.example/x"}, "must begin with http"),
        ({"address": "https://me:pw@a.example/"}, "must not hold a user name"),
        ({"kind": "mail", "address": "me@example.org"}, "This is no address of mail."),
        ({"kind": "bark", "address": "json://a.example/x"}, "This is no address of Bark."),
        ({"address": "https://a.example/x", "quiet_hours": "at night"}, "is not like 23:00-07:30"),
        ({"address": "https://a.example/x", "alerts": ["weather"]}, "weather is not one of"),
        ({"address": "https://a.example/" + "x" * 5_000}, "at most 4000"),
    ],
)
def test_what_can_be_no_route_is_said_at_its_field(browser: Client, values: Any, words: str):
    assert words in save(browser, **values)
    assert not AlertRoute.objects.exists()


@pytest.mark.parametrize(
    ("kind", "address", "shown"),
    [
        ("webhook", "https://a.example/k3y?t=k3y", "https://a.example"),
        ("mail", "mailtos://me:k3y@smtp.example:465/?to=k3y", "mailtos://smtp.example"),
        ("bark", "https://api.day.app/k3y", "https://api.day.app"),
        ("serverchan", "SCTk3y", "schan://••••"),
        ("telegram", "tgram://1:k3y/2/", "tgram://••••"),
        ("ntfy", "ntfys://k3y", "ntfys://••••"),
        ("discord", "https://discord.com/api/webhooks/1/k3y", "https://••••"),
    ],
)
def test_of_an_address_scheme_and_host_alone_are_shown_and_keep_it(
    browser: Client, kind: str, address: str, shown: str
):
    assert save(browser, kind=kind, address=address) == ""
    row = AlertRoute.objects.get()
    assert address not in row.sealed_address  # which may hold any three signs
    for page in ("", f"{row.pk}/change/"):
        text = browser.get(f"/admin/agent/alertroute/{page}").content.decode()
        assert shown in text
        assert "k3y" not in text
    assert save(browser, kind=kind, address=shown, name="other") == ""
    row.refresh_from_db()
    assert (row.name, row.address) == ("other", address)


def test_an_address_does_not_go_along_to_another_kind(browser: Client):
    save(browser, address="https://a.example/x")
    told = save(browser, kind="bark", address="https://a.example")
    assert "Enter it again: it is of another kind." in told
    assert save(browser, kind="owners", address="https://a.example") == ""
    assert AlertRoute.objects.get().address == ""


def test_alerts_are_chosen_and_none_means_all(browser: Client):
    save(browser, address="https://a.example/x", alerts=["disk", "mcp"])
    assert AlertRoute.objects.get().alerts == ["disk", "mcp"]
    text = browser.get("/admin/agent/alertroute/").content.decode()
    assert "disk nearly full, MCP server not connected" in text
    assert save(browser, address="https://a.example") == ""
    assert AlertRoute.objects.get().alerts == []


def test_the_button_sends_one_message_and_says_what_came_of_it(
    browser: Client, file_server: Any, settings: Any
):
    settings.FETCH_ALLOW = ["127.0.0.1"]
    save(browser, address=file_server.serve("/k3y", files.sends(b"ok")))
    page = f"/admin/agent/alertroute/{AlertRoute.objects.get().pk}"
    text = browser.post(f"{page}/test/", follow=True).content.decode()
    assert "Tested: arrived" in text
    file_server.serve("/k3y", files.redirects("https://b.example/k3y"))
    text = browser.post(f"{page}/test/", follow=True).content.decode()
    assert "the server sends elsewhere, which is not followed" in text
    assert "k3y" not in text
    assert browser.get(f"{page}/test/").status_code == 405
    assert logged_in("viewer").post(f"{page}/test/").status_code == 403
    assert [one.target for one in file_server.requests] == ["/k3y", "/k3y"]


def test_the_button_tells_the_owners(browser: Client, monkeypatch: pytest.MonkeyPatch):
    save(browser, kind="owners")
    page = f"/admin/agent/alertroute/{AlertRoute.objects.get().pk}/test/"
    assert "nobody to tell" in browser.post(page, follow=True).content.decode()
    look = AlertLook((), {"10001": {"7"}}, ("10001",))
    served = SimpleNamespace(find_alerts=lambda: look)
    monkeypatch.setattr("agent.admin.alerts.serving.get_serving", lambda: served)
    browser.post(page)
    assert Message.objects.get().sender_id == "7"
