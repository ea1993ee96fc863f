"""Errors in words, for templates; see :mod:`agent.pages.error_words`."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agent.pages.error_words import error_block, shown_words

register = template.Library()


@register.filter
def error_words(raw: object) -> SafeString | str:
    """``raw`` as a block: what happened, what to do, the text on record folded; "" for none."""
    return error_block(str(raw or ""))


@register.filter
def error_sentence(raw: object) -> str:
    """What happened, in one line; words that are not ours are marked as of any language."""
    told = shown_words(str(raw or ""))
    if told.is_foreign:
        return format_html('<span lang="">{}</span>', told.sentence)
    return told.sentence
