"""Secrets in the admin: entered and replaced, in no answer ever, and missed before they are
deleted."""

import pytest
from django.test import Client

from tests.admin.http_forms import SECRETS, broken_secret, secret
from tests.admin.record import logged_in, page
from tools.models import ConfigVersion, HttpTool, Secret, ToolConfigChange

VALUE = "hush-hush 1"


def send(client: Client, address: str, **form: str) -> str:
    """The page that came back; "" when it was saved."""
    response = client.post(SECRETS + address, form)
    return "" if response.status_code == 302 else response.content.decode()


def used(name: str = "key") -> HttpTool:
    return HttpTool.objects.create(
        name="get_weather", url="https://a.example/", headers={"A": f"Bearer {{secret:{name}}}"}
    )


def test_a_secret_is_entered_replaced_and_kept(browser: Client):
    before = ConfigVersion.current()
    assert send(browser, "add/", name="key", hosts="api.example.com", value=f" {VALUE} ") == ""
    row = Secret.objects.get()
    assert row.value == VALUE
    assert VALUE not in row.sealed
    assert send(browser, f"{row.pk}/change/", value="") == ""
    assert Secret.objects.get().value == VALUE
    assert send(browser, f"{row.pk}/change/", name="other", value="new") == ""
    assert (Secret.objects.get().name, Secret.objects.get().value) == ("key", "new")
    assert ConfigVersion.current() > before


def test_no_page_ever_shows_a_value(browser: Client):
    row = secret(value=VALUE)
    used()
    texts = [
        page(browser, SECRETS + address)
        for address in ("", f"{row.pk}/change/", f"{row.pk}/history/", f"{row.pk}/delete/")
    ]
    texts.append(send(browser, "add/", name="no good", hosts="a.example", value=VALUE))
    texts.append(send(browser, "add/", name="key", hosts="a.example", value=VALUE))
    texts.append(send(browser, f"{row.pk}/change/", value=f"{VALUE}\n2"))
    texts.append(send(browser, f"{row.pk}/change/", value=VALUE * 1000))
    assert all(texts)
    assert not [text for text in texts if "hush" in text]
    send(browser, f"{row.pk}/change/", value=VALUE)
    assert not [
        entry
        for entry in ToolConfigChange.objects.all()
        if "hush" in f"{entry.words} {entry.name} {entry.before} {entry.after}"
    ]


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"name": "1a", "hosts": "a.example", "value": "v"}, "beginning with a letter"),
        ({"name": "key", "hosts": "a.example", "value": "v"}, "of this name already"),
        ({"name": "b", "hosts": "a.example", "value": ""}, "This field is required."),
        ({"name": "b", "hosts": "a.example", "value": "a\nb"}, "control character"),
        ({"name": "b", "hosts": "a.example", "value": "a" * 8001}, "at most 8000"),
    ],
)
def test_a_problem_is_told_and_nothing_is_stored(
    browser: Client, form: dict[str, str], problem: str
):
    secret()
    assert problem in send(browser, "add/", **form)
    assert Secret.objects.count() == 1


def test_a_secret_that_cannot_be_read_any_more_is_flagged_and_entered_anew(browser: Client):
    row = broken_secret()
    assert "enter it anew" in page(browser, SECRETS)
    assert "can no longer be read" in page(browser, f"{SECRETS}{row.pk}/change/")
    assert "This field is required." in send(browser, f"{row.pk}/change/", value="")
    assert send(browser, f"{row.pk}/change/", value="new") == ""
    assert Secret.objects.get().value == "new"
    assert "enter it anew" not in page(browser, SECRETS)


def test_pages_tell_where_a_secret_is_used(browser: Client):
    row, tool = secret(), used()
    for address in ("", f"{row.pk}/change/", f"{row.pk}/delete/"):
        assert f"/admin/tools/httptool/{tool.pk}/change/" in page(browser, SECRETS + address)
    assert "without it these tools fail" in page(browser, f"{SECRETS}{row.pk}/delete/")


def test_deleting_several_warns_of_those_in_use(browser: Client):
    rows = [secret(), secret("idle")]
    used()
    form = {"action": "delete_selected", "_selected_action": [row.pk for row in rows]}
    text = browser.post(SECRETS, form).content.decode()
    assert "“key” is in use" in text
    assert "“idle” is in use" not in text
    browser.post(SECRETS, form | {"post": "yes"})
    assert not Secret.objects.exists()


def test_a_viewer_sees_names_alone(db: None):
    row, viewer = secret(value=VALUE), logged_in("viewer")
    text = page(viewer, f"{SECRETS}{row.pk}/change/")
    assert "key" in text
    assert 'name="value"' not in text
    assert viewer.post(f"{SECRETS}{row.pk}/change/", {"value": "new"}).status_code == 403
    assert viewer.get(f"{SECRETS}add/").status_code == 403
    assert Secret.objects.get().value == VALUE


def test_an_operator_replaces_secrets(db: None):
    row = secret()
    assert send(logged_in("operator"), f"{row.pk}/change/", value="new") == ""
    assert Secret.objects.get().value == "new"


def test_the_form_says_before_saving_that_new_hosts_want_the_value_again(browser: Client):
    send(browser, "add/", name="key", hosts="api.example.com", value=VALUE)
    assert "Whoever changes the hosts enters the value again" in page(
        browser, f"/admin/tools/secret/{Secret.objects.get().pk}/change/"
    )
