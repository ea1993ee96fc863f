"""Any error on record in words for people: of models, of OneBot clients, of the network.

What an error says of model endpoints is for those who may see them: others read no text on record
of them, on pages.

In templates: ``{% load error_words %}`` and ``{{ run.error|error_words }}`` (a block, the text on
record folded) or ``{{ run.error|error_sentence }}`` (one line).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from agent.domain import errors, failures
from agent.llm.errors.error_words import explain_model_error
from agent.models import ModelEndpoint
from tools.admin.record_pages import clamp_text
from tools.text.error_words import (
    ErrorWords,
    explain_network_error,
    is_sentence,
    retell,
    tell_again,
)
from tools.text.readable import escape_invisible_chars

VIEW_ENDPOINT = "agent.view_modelendpoint"
#: Of a text that is not known: it speaks of models, or holds an address.
_TELLS = re.compile(r"\bmodel|\bendpoint|模型|端点|://", re.IGNORECASE)


class PageReader:
    """Asks for nothing before an error is shown."""

    def __init__(self, user: Any) -> None:
        self.user = user

    def may_read(self, text: str) -> bool:
        """Whether ``text``, which is no known one, names neither an endpoint nor its host."""
        told = text.casefold()
        return not _TELLS.search(text) and not any(name in told for name in self._names)

    @cached_property
    def _names(self) -> set[str]:
        rows = ModelEndpoint.objects.values_list("name", "model", "base_url")
        names = {one for name, model, url in rows for one in (name, model, urlsplit(url).hostname)}
        return {name.casefold() for name in names if name}


_reader: ContextVar[PageReader | None] = ContextVar("reader of a page", default=None)


def find_shut_out() -> PageReader | None:
    """Whoever reads and may not see model endpoints; None for all others, and outside pages."""
    reader = _reader.get()
    return reader if reader and not reader.user.has_perm(VIEW_ENDPOINT) else None


@contextmanager
def page_read_by(user: Any) -> Iterator[None]:
    """Have errors that are shown within be for ``user``."""
    token = _reader.set(PageReader(user))
    try:
        yield
    finally:
        _reader.reset(token)


#: What a run is recorded with whose model asked for tools until it had no call left.
OUT_OF_CALLS = "out of model calls"
_TOO_LONG = re.compile(r"the run took longer than [\d.]+ s")


def _words_of(kind: failures.FailureKind) -> tuple[Promise, Promise]:
    happened, remedy = failures.WORDS[kind]
    return gettext_lazy(happened), gettext_lazy(remedy)


#: What clients say, and for each what happened and what to do. The first three are QQ's own
#: results, as NapCat words them and as Lagrange numbers them.
_CLIENT: tuple[tuple[str, str | Promise, str | Promise], ...] = (
    *((f"^{said}", *_words_of(kind)) for kind, said in failures.OF_OFFICIAL_BOTS.items()),
    (failures.UNASKED, *_words_of(failures.FailureKind.UNASKED)),
    (
        r"\b22009\b|消息发送超频",
        gettext_lazy("QQ refused it: the official bot sends too many messages."),
        gettext_lazy("Let the account send less in a minute."),
    ),
    (
        r"\b30408[23]\b",
        gettext_lazy("QQ could not load a picture or file of the official bot."),
        gettext_lazy("QQ takes addresses that are public alone."),
    ),
    (
        r"\bresult\W{1,6}120\b|^retcode 120$",
        gettext_lazy("QQ refused it: the account is muted in this group."),
        gettext_lazy("It speaks again when the mute has ended."),
    ),
    (
        r"\bresult\W{1,6}110\b|^retcode 110$",
        gettext_lazy("QQ refused it: the account is no longer in this group."),
        "",
    ),
    (
        r"Timeout: NTEvent",
        gettext_lazy("QQ did not confirm the message; it may have arrived, or been held back."),
        gettext_lazy(
            "Look into the chat. If nothing arrives there for long, sign in to QQ by hand."
        ),
    ),
    (
        r"^retcode 1?404$|不支持的Api|API_NOT_FOUND",
        gettext_lazy("The OneBot client does not know this action."),
        gettext_lazy("Update the client, or use one that has it."),
    ),
    (
        r"^no answer (through another process )?within [\d.]+ s",
        gettext_lazy("The OneBot client did not answer in time; the message may have been sent."),
        gettext_lazy("See whether the client still runs, and its log."),
    ),
    (
        r"^retcode -?\d+$",
        gettext_lazy("The OneBot client refused it without saying why."),
        gettext_lazy("Its own log says more."),
    ),
    (
        r"^the message is larger than \d+ MiB",
        gettext_lazy("The message is too large for the client."),
        gettext_lazy("Send smaller pictures or files."),
    ),
    (
        r"^the client did not load ",
        gettext_lazy("The OneBot client could not load a picture or file."),
        gettext_lazy(
            "Can the client reach this address? In a container, 127.0.0.1 is the container."
        ),
    ),
)


def explain_error(raw: str) -> ErrorWords:
    """The words for ``raw``, as it is on record, in the language of the moment.

    A text that is not known is its own sentence; "" for "".
    """
    reader = find_shut_out()
    if reader is None:
        return _explain(raw.strip())
    text = raw.split(errors.THEN)[0].strip()
    told = _explain(text)
    if told.raw or not text or text == OUT_OF_CALLS or is_sentence(text):
        return told._replace(raw="")
    if reader.may_read(text):
        return told
    return ErrorWords(_("It failed; those who may see model endpoints see why."))


def _explain(text: str) -> ErrorWords:
    if not text:
        return ErrorWords("")
    if text == OUT_OF_CALLS:
        return ErrorWords(
            _("The model used up its calls before it had an answer."),
            _("Allow the persona more model calls if it needs them."),
        )
    if _TOO_LONG.fullmatch(text):
        happened, remedy = failures.WORDS[failures.FailureKind.TIME]
        return ErrorWords(_(happened), _(remedy), text)
    if is_sentence(text):
        return ErrorWords(retell(text))
    of_clients = (
        ErrorWords(str(happened), str(remedy), text)
        for pattern, happened, remedy in _CLIENT
        if re.search(pattern, text, re.IGNORECASE)
    )
    known = explain_model_error(text) or next(of_clients, None) or explain_network_error(text)
    return known or tell_again(text)


def shown_words(raw: str) -> ErrorWords:
    """The words for ``raw``, with what cannot be seen written as its escape."""
    told = explain_error(raw)
    sentence, advice, kept = (
        escape_invisible_chars(part, keep="\n\t") for part in (told.sentence, told.advice, told.raw)
    )
    return ErrorWords(sentence, advice, kept, told.is_foreign)


def format_error(raw: str) -> str:
    """What happened, as a list shows it: one sentence."""
    told = shown_words(raw)
    return clamp_text(told.sentence, is_foreign=told.is_foreign)


def error_sentence(raw: object) -> str:
    """What happened, in one line; words that are not ours are marked as of any language."""
    told = shown_words(str(raw or ""))
    if told.is_foreign:
        return format_html('<span lang="">{}</span>', told.sentence)
    return told.sentence


def error_block(raw: str) -> SafeString | str:
    """What happened, what to do, the text on record folded; "" for none."""
    told = shown_words(raw)
    return render_to_string("admin/error_words.html", {"told": told}) if told.sentence else ""
