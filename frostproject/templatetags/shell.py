"""What the templates around every page of the admin ask for."""

from typing import Any

from django import template
from django.core.exceptions import FieldDoesNotExist
from django.forms import Media

from frostproject.cockpit import tables
from tools.admin import settings_page
from tools.text.readable import escape_direction_chars

register = template.Library()
register.filter("table_words", tables.find_words)
register.filter("table_name", tables.name_table)
register.filter("change_words", settings_page.change_words)
# A name that cannot turn the direction of what stands around it.
register.filter("harmless", lambda value: escape_direction_chars(str(value)))
register.inclusion_tag("admin/change_list_results.html", name="rows")(tables.draw_list)


@register.simple_tag(takes_context=True)
def conditions(context: Any) -> list[tuple[str, str, str]]:
    """The conditions of the list on this page."""
    return list(tables.list_conditions(context["cl"], context["request"]))


@register.simple_tag(takes_context=True)
def name_inline_controls(context: Any) -> str:
    """Before a row's page is shown: name the fields of its tables of other rows."""
    for inline in context.get("inline_admin_formsets") or ():
        rows = [form.fields for form in inline.formset.forms]
        for fields in (*rows, inline.formset.form.base_fields):  # the last for rows to be added
            tables.name_controls(fields)
    return ""


@register.simple_tag(takes_context=True)
def needed_media(context: Any) -> Any:
    """The scripts and styles of a list or of one row's page, without the scripts of Django's admin
    that are for editing where nothing is edited."""
    changes, media = context.get("cl"), context["media"]
    asked = ("add", "has_change_permission", "has_editable_inline_admin_formsets", "is_popup")
    if (changes.formset or changes.is_popup) if changes else any(map(context.get, asked)):
        return media
    kept = {"admin/js/actions.js"} if changes and context.get("action_form") else set()
    scripts = [one for one in media._js if not str(one).startswith("admin/js/") or one in kept]
    return Media(css=media._css, js=scripts)


@register.filter
def is_said(fieldset: Any) -> bool:
    """Whether one of the fields says something else than those of a new row."""
    return any(_says_something(field) for line in fieldset for field in line)


def _says_something(shown: Any) -> bool:
    """What the program writes, and nobody enters, says nothing."""
    form = shown.form if shown.is_readonly else shown.field.form
    name = shown.field["name"] if shown.is_readonly else shown.field.name
    try:
        column = form._meta.model._meta.get_field(str(name))
    except FieldDoesNotExist:
        column = None
    if shown.is_readonly:
        if column is None or not column.editable or name in shown.model_admin.readonly_fields:
            return False
        return bool(column.value_from_object(form.instance) != column.get_default())
    usual = shown.field.field.initial if column is None else column.get_default()
    if form.is_bound:
        return bool(shown.field.field.has_changed(usual, shown.field.value()))
    return form.get_initial_for_field(shown.field.field, name) not in (None, "", usual)
