"""Long forms: what is asked for first, and what holds where a field is left empty."""

import re

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten
from django.test import Client

from tests.admin.record import page
from tools.admin.settings_page import SettingsAdmin

pytestmark = pytest.mark.django_db
MOST_FIRST = 8
FIELD = re.compile(r'<div class="form-row.*?(?=<div class="form-row|</fieldset>)', re.DOTALL)


def test_a_form_asks_for_few_fields_first():
    forms = [one for one in admin.site._registry.values() if isinstance(one, SettingsAdmin)]
    counts = {one.opts.model_name: len(flatten(one.first_fields)) for one in forms}
    assert counts["manners"] >= 6
    assert {name: count for name, count in counts.items() if count > MOST_FIRST} == {}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize(
    "form", ["manners/add", "persona/add", "modelendpoint/add", "installation"]
)
def test_what_holds_instead_of_an_empty_field_is_said_once(
    browser: Client, form: str, language: str
):
    browser.cookies["django_language"] = language
    rows = FIELD.findall(page(browser, f"/admin/agent/{form}/"))
    holding = [row for row in rows if 'class="help holds"' in row]
    assert holding
    assert [row for row in holding if re.search("Empty:|留空[：则]", row)] == []
