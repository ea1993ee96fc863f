"""Long forms in a browser: what is folded in is opened by what leads to it, small tables grow, and
what does not count is away."""

from playwright.sync_api import expect


def test_a_link_opens_the_group_of_its_field_alone(open_window):
    page = open_window().page
    page.goto("/admin/agent/manners/add/#id_reaction")
    expect(page.locator("#id_reaction")).to_be_focused()
    expect(page.locator("#id_silenced")).to_be_hidden()
    page.goto("/admin/agent/manners/add/#id_silenced")
    expect(page.locator("#id_silenced")).to_be_visible()


def test_form_of_an_http_tool_has_the_rows_and_fields_that_it_needs(open_window):
    window = open_window(language="en")
    page = window.page
    page.goto("/admin/tools/httptool/add/")
    body, path = page.locator(".field-body"), page.locator(".field-answer_path")
    for name in ("body_kind", "answer_kind"):
        page.locator(f"details:has(#id_{name}) > summary").click()
    expect(body).to_be_hidden()
    page.select_option("#id_body_kind", "json")
    expect(body).to_be_visible()
    page.select_option("#id_answer_kind", "jsonpath")
    expect(path).to_be_visible()
    query = page.locator(".rows-table[data-name=query]")
    rows = query.locator("tbody tr")
    expect(rows).to_have_count(1)
    query.locator(".add-row").click()
    expect(rows.last.locator("input[type=text]").first).to_be_focused()
    page.keyboard.type("city")
    rows.first.locator(".remove-row").click()
    expect(rows).to_have_count(1)
    names = rows.locator("[name]").evaluate_all("all => all.map((one) => one.name)")
    assert names
    assert not [name for name in names if "__number__" in name or not name.startswith("query-")]
    schema = page.locator(".parameters .way[data-way=json]")
    expect(schema).to_be_hidden()
    page.locator(".parameters input[type=radio][value=json]").check()
    expect(schema).to_be_visible()
    assert window.basics() == []
