"""Errors in words, for templates; see :mod:`agent.admin.error_words`."""

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agent.admin.error_words import explain_error
from tools.text.error_words import ErrorWords
from tools.text.visible import escape_invisible_chars

register = template.Library()


@register.filter
def error_words(raw: object) -> SafeString | str:
    """``raw`` as a block: what happened, what to do, the text on record folded; "" for none."""
    told = _told(raw)
    return render_to_string("admin/error_words.html", {"told": told}) if told.sentence else ""


@register.filter
def error_sentence(raw: object) -> str:
    """What happened, in one line without markup."""
    return _told(raw).sentence


def _told(raw: object) -> ErrorWords:
    told = explain_error(str(raw or ""))
    return ErrorWords(*(escape_invisible_chars(part, keep="\n\t") for part in told))
