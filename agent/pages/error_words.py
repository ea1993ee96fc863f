"""Any error on record in words for people: of models, of OneBot clients, of the network.

Those who may not see model endpoints read no text on record of them, on pages.

In templates: ``{% load error_words %}`` and ``{{ run.error|error_words }}`` (a block, the text on
record folded) or ``{{ run.error|error_sentence }}`` (one line).
"""

import re

from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from agent.domain import errors, failures
from agent.llm.errors.error_words import explain_model_error
from agent.pages.page_reader import find_shut_out
from tools.admin.record_pages import clamp_text
from tools.text.error_words import (
    ErrorWords,
    explain_network_error,
    is_sentence,
    retell,
    tell_again,
)
from tools.text.readable import escape_invisible_chars

#: What a run is recorded with whose model asked for tools until it had no call left.
OUT_OF_CALLS = "out of model calls"
_TOO_LONG = re.compile(r"the run took longer than [\d.]+ s")
#: What clients say, and for each what happened and what to do. The first three are QQ's own
#: results, as NapCat words them and as Lagrange numbers them.
_CLIENT: tuple[tuple[str, str | Promise, str | Promise], ...] = (
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
    known = explain_model_error(text) or _explain_client_error(text) or explain_network_error(text)
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


def error_block(raw: str) -> SafeString | str:
    """What happened, what to do, the text on record folded; "" for none."""
    told = shown_words(raw)
    return render_to_string("admin/error_words.html", {"told": told}) if told.sentence else ""


def _explain_client_error(raw: str) -> ErrorWords | None:
    for pattern, happened, remedy in _CLIENT:
        if re.search(pattern, raw, re.IGNORECASE):
            return ErrorWords(str(happened), str(remedy), raw)
    return None
