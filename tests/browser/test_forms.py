"""Long forms in a browser: what is folded in is opened by what leads to it."""

from playwright.sync_api import expect


def test_a_link_opens_the_group_of_its_field_alone(open_window):
    page = open_window().page
    page.goto("/admin/agent/manners/add/#id_reaction")
    expect(page.locator("#id_reaction")).to_be_focused()
    expect(page.locator("#id_silenced")).to_be_hidden()
    page.goto("/admin/agent/manners/add/#id_silenced")
    expect(page.locator("#id_silenced")).to_be_visible()
