"""Errors in words, for templates; see :mod:`agent.pages.error_words`."""

from django import template
from django.utils.safestring import SafeString

from agent.pages.error_words import error_block, error_sentence

register = template.Library()


@register.filter
def error_words(raw: object) -> SafeString | str:
    """``raw`` as a block: what happened, what to do, the text on record folded; "" for none."""
    return error_block(str(raw or ""))


register.filter(error_sentence)
