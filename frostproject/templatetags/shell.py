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
register.inclusion_tag("admin/change_list_results.html", name="rows")(tables.draw_list)


@register.simple_tag(takes_context=True)
def conditions(context: Any) -> list[tuple[str, str, str]]:
    """The conditions of the list on this page."""
    return list(tables.list_conditions(context["cl"], context["request"]))


@register.simple_tag(takes_context=True)
def name_inline_controls(context: Any) -> str:
    """Before a row's page is shown: name the fields of its tables of other rows."""
    tables.name_inline_controls(context.get("inline_admin_formsets") or ())
    return ""


@register.simple_tag(takes_context=True)
def list_media(context: Any) -> Media:
    """The scripts and styles of a list."""
    changes = context["cl"]
    is_edited = bool(changes.formset) or changes.is_popup
    return tables.needed_media(
        context["media"], is_edited=is_edited, has_actions=bool(context.get("action_form"))
    )


@register.simple_tag(takes_context=True)
def form_media(context: Any) -> Media:
    """The scripts and styles of one row's page."""
    asked = ("add", "has_change_permission", "has_editable_inline_admin_formsets", "is_popup")
    is_edited = any(context.get(name) for name in asked)
    return tables.needed_media(context["media"], is_edited=is_edited, has_actions=False)


@register.filter
def is_said(fieldset: Any) -> bool:
    """Whether one of the fields says something else than those of a new row."""
    shown = [field for line in fieldset for field in line]
    return any(_says_something(field) for field in shown)


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


@register.filter
def harmless(value: object) -> str:
    """A name that cannot turn the direction of what stands around it."""
    return escape_direction_chars(str(value))
