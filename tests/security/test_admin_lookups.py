"""No condition typed into an address of the admin tells what a row keeps to itself."""

import pytest
import requests
from django.contrib import admin
from django.db.models import Model
from django.test import RequestFactory

from tests.environment import PATIENCE
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer

#: Columns of any model that hold what a viewer is not shown.
KEPT = {
    "sealed",
    "sealed_headers",
    "sealed_environment",
    "config",
    "url",
    "headers",
    "arguments",
    "body",
    "query",
    "password",
}
ADDRESSES = [
    "tools/secret/?sealed__startswith=gAAAA",
    "tools/secret/?sealed__gt=a",
    "tools/secret/?sealed=a",
    "tools/secret/?sealed__regex=%5EgAAAA",
    "tools/mcpserver/?sealed_headers__startswith=g",
    "tools/mcpserver/?sealed_environment__isnull=0",
    "tools/mcpserver/?statuses__server__sealed_headers__startswith=g",
    "tools/httptool/?headers__contains=Authorization",
    "tools/httptool/?url__startswith=https",
    "tools/plugin/?config__key__startswith=a",
    "tools/pluginvalue/?plugin__config__contains=a",
    "tools/toolconfigchange/?author__password__startswith=p",
    "tools/toolconfig/?changes__author__password__startswith=p",
    "auth/user/?password__startswith=p",
    "auth/group/?user__password__startswith=p",
    "onebot/bot/?owners__startswith=1",
]


def signed_in(server: LiveServer) -> requests.Session:
    browser = requests.Session()
    browser.trust_env = False
    browser.get(f"{server.url}/admin/login/", timeout=PATIENCE)
    form = {
        "username": ADMIN,
        "password": ADMIN_PASSWORD,
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
    }
    assert (
        browser.post(
            f"{server.url}/admin/login/", form, allow_redirects=False, timeout=PATIENCE
        ).status_code
        == 302
    )
    return browser


def test_even_the_superuser_cannot_guess_a_secret_sign_by_sign(live: LiveServer):
    browser = signed_in(live)
    answers = {
        place: browser.get(f"{live.url}/admin/{place}", timeout=PATIENCE).status_code
        for place in ADDRESSES
    }
    assert answers == dict.fromkeys(ADDRESSES, 400)


def test_the_filters_of_the_lists_go_on_working(live: LiveServer):
    browser = signed_in(live)
    for place in (
        "tools/toolconfig/?enabled__exact=1&visibility__exact=always",
        "tools/httptool/?enabled__exact=1",
        "tools/toolconfig/?provider=x",
        "tools/secret/?q=a",
    ):
        assert browser.get(f"{live.url}/admin/{place}", timeout=PATIENCE).status_code == 200


def kept_columns(model: type[Model], depth: int = 3) -> list[str]:
    """Lookups from ``model`` to each column that is kept back, over any relation."""
    found = []
    for field in model._meta.get_fields():
        if field.is_relation and field.related_model and depth:
            found += [
                f"{field.name}__{rest}" for rest in kept_columns(field.related_model, depth - 1)
            ]
        elif field.name in KEPT:
            found.append(field.name)
    return found


@pytest.mark.parametrize("model", admin.site._registry, ids=lambda model: model.__name__)
def test_no_list_takes_a_condition_on_a_column_that_is_kept_back(
    model: type[Model], rf: RequestFactory
):
    site = admin.site._registry[model]
    lookups = [
        f"{column}{how}"
        for column in kept_columns(model)
        for how in ("", "__startswith", "__gt", "__regex", "__isnull")
    ]
    assert [lookup for lookup in lookups if site.lookup_allowed(lookup, "a", rf.get("/"))] == []
