"""What is put into a page many times is escaped as everywhere."""

from django.utils.html import format_html
from django.utils.safestring import SafeString

from tools.text.readable import fill


def test_texts_are_escaped_and_what_is_safe_already_is_not():
    form, texts = '<a title="{}">{}</a>{}', ("\"'&<>", 12, SafeString("<br>"))
    assert fill(form, *texts) == format_html(form, *texts)
    assert isinstance(fill(form, *texts), SafeString)
