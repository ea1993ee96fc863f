"""Lists as people meet them: conditions that can be taken away, cells that say what they are."""

import re
from typing import Any

import pytest
from django.contrib.admin.templatetags import admin_list
from django.test import Client

from agent.models import Manners
from frostproject.cockpit.tables import quick_rows
from tests.admin.record import chat, logged_in, page, run_for, said
from tools.models import HttpTool


def conditions(text: str) -> list[str]:
    """The conditions that a list names, as words."""
    found = re.findall(r'title="Remove this condition">(.*?) <span', text)
    return [" ".join(each.split()) for each in found]


def test_a_filter_in_force_is_named_and_can_be_taken_away(browser: Client):
    said(chat(), state="recorded")
    text = page(browser, "/admin/agent/message/?state__exact=recorded&q=hello")
    assert conditions(text) == ["State: recorded"]
    assert '<details id="filter-drawer" open>' in text
    assert '<a href="?q=hello" title="Remove this condition">' in text


def test_a_condition_of_a_link_is_named_though_no_filter_offers_it(browser: Client):
    session = chat(title="<b>hikers</b>")
    said(session)
    text = page(browser, f"/admin/agent/message/?session__id__exact={session.pk}&id__lt=99")
    assert conditions(text)[0].startswith("Chat session: &lt;b&gt;hikers&lt;/b&gt;")
    assert conditions(text)[1] == "Older than: #99"


def test_a_condition_names_no_row_that_the_user_may_not_see(browser: Client):
    text = page(browser, "/admin/agent/message/?session__id__exact=12345")
    assert conditions(text) == ["Chat session: #12345"]


def test_a_list_without_a_condition_has_its_filters_closed(browser: Client):
    text = page(browser, "/admin/agent/message/")
    assert conditions(text) == []
    assert '<details id="filter-drawer">' in text


def test_rows_are_counted_beside_the_search_only_while_there_is_a_condition(browser: Client):
    Manners.objects.bulk_create(Manners(name=name) for name in ("quiet", "lively"))
    address = "/admin/agent/manners/"
    assert "Show all" not in page(browser, address)
    assert "1 result (" in " ".join(page(browser, f"{address}?q=quiet").split())
    assert "0 results (" in " ".join(page(browser, f"{address}?enabled__exact=0").split())


def test_every_cell_has_the_head_of_its_column_for_narrow_screens(browser: Client):
    said(chat())
    row = page(browser, "/admin/agent/message/").split("<tbody>")[-1].split("</tr>")[0]
    assert row.count("<td ") == row.count("<td data-label=") >= 4
    assert '<td data-label="State"' in row


@pytest.mark.parametrize("address", ["agent/message", "agent/run"])
def test_rows_are_drawn_as_django_draws_them(browser: Client, address: str):
    run_for(said(chat(title="<b>hikers</b> \u202e"), text="<i>"))
    answer: Any = browser.get(f"/admin/{address}/?q=")
    changes = answer.context_data["cl"]
    drawn = [list(cells) for _form, cells in quick_rows(changes) or ()]
    assert drawn
    assert drawn == [list(cells) for cells in admin_list.results(changes)]


def test_every_field_that_a_list_edits_has_a_name(browser: Client):
    HttpTool.objects.create(name="get_weather", enabled=False)
    body = page(browser, "/admin/tools/httptool/").split("<tbody>")[-1].split("</tbody>")[0]
    fields = re.findall(r"<(?:input|select)[^>]*name=\"form-\d+-(?!id\b)[^>]*>", body)
    assert fields
    assert all("aria-label=" in field and "get_weather" in field for field in fields)


def test_a_list_that_nobody_edits_loads_no_script_for_editing(db: None):
    text = page(logged_in("viewer"), "/admin/agent/message/")
    assert "jquery" not in text
    assert "jsi18n" not in text


def test_a_page_that_nobody_edits_loads_no_script_for_editing(browser: Client):
    message = said(chat())
    text = page(browser, f"/admin/agent/message/{message.pk}/change/")
    assert "jquery" not in text
    assert "prepopulate" not in text
