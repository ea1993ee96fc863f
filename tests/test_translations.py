"""The Chinese catalogue is complete and compiled. English needs none: the texts in the code are
English."""

import re
from functools import cache

from babel.messages.catalog import Message
from django.utils import translation

from tests.catalogue import MO_FILE, catalogue, compiled, texts_in_use

texts = cache(texts_in_use)
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[.\d]*[sdgf]|\{\w*\}")


def translated(message: Message) -> list[str]:
    return [message.string] if isinstance(message.string, str) else list(message.string or [""])


def test_texts_are_found_in_code_and_in_templates():
    assert {("chat session", None), ("Take over", None), ("group", "chat")} <= texts().keys()
    assert (("%(count)s tool offered", "%(count)s tools offered"), None) in texts()


def test_every_text_is_translated():
    known = catalogue()
    entries = {
        (text, context): known.get(text[0] if isinstance(text, tuple) else text, context)
        for text, context in texts()
    }
    wanting = {
        text
        for text, entry in entries.items()
        if entry is None or entry.fuzzy or not all(translated(entry))
    }
    assert {text: texts()[text] for text in wanting} == {}


def test_a_chinesekeeps_the_placeholders_of_its_text():
    for message in catalogue():
        text = message.id if isinstance(message.id, str) else message.id[1]
        for chinese in filter(None, translated(message) if text else ()):
            assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(chinese))


def test_the_catalogue_holds_nothing_that_is_not_used():
    used = {text[0] if isinstance(text, tuple) else text for text, _context in texts()}
    kept = {m.id if isinstance(m.id, str) else m.id[0] for m in catalogue() if m.id}
    assert kept <= used
    assert not catalogue().obsolete


def test_the_compiled_catalogue_is_that_of_the_source():
    assert MO_FILE.read_bytes() == compiled(catalogue())


def test_english_stays_english_and_a_chinese_browser_is_given_chinese():
    with translation.override("en"):
        assert translation.gettext("chat session") == "chat session"
    with translation.override("zh-hans"):
        assert translation.gettext("chat session") == "会话"
