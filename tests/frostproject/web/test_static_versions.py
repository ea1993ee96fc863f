"""How long browsers keep static files."""

import re

import pytest
from django.templatetags.static import static
from django.test import Client

from frostproject.web.browser_policy import LASTING

pytestmark = pytest.mark.django_db
SHEET = "admin/css/base.css"


def kept(client: Client, address: str) -> str:
    """What a file's answer says about keeping it."""
    answer = client.get(address)
    assert answer.status_code == 200
    answer.close()
    return answer.headers["Cache-Control"]


def test_an_address_changes_with_the_content():
    assert re.fullmatch(rf"/static/{SHEET}\?v=[0-9a-f]{{12}}", static(SHEET))


def test_a_file_under_its_version_is_kept(client: Client):
    assert kept(client, static(SHEET)) == LASTING


@pytest.mark.parametrize("query", ["", "?v=", "?v=000000000000", "?v=../../x"])
def test_a_file_under_another_version_is_asked_for_again(client: Client, query: str):
    assert "immutable" not in kept(client, f"/static/{SHEET}{query}")


@pytest.mark.parametrize("name", ["nothing.css", "../settings.py", "%00"])
def test_what_is_not_there_is_not_kept(client: Client, name: str):
    answer = client.get(f"/static/{name}?v=1")
    assert answer.status_code in (400, 404)
    assert "Cache-Control" not in answer.headers
