"""Any error on record in words for people: of models, of OneBot clients, of the network. Pure.

In templates: ``{% load error_words %}`` and ``{{ run.error|error_words }}`` (a block, the text on
record folded) or ``{{ run.error|error_sentence }}`` (one line).
"""

import re

from django.utils.translation import gettext as _

from agent.llm.error_words import explain_model_error
from tools.text.error_words import ErrorWords, explain_network_error

#: What a run is recorded with whose model asked for tools until it had no call left.
OUT_OF_CALLS = "out of model calls"
_CLIENT = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        # QQ's own results, as NapCat words them and as Lagrange numbers them
        ("muted", r"\bresult\W{1,6}120\b|^retcode 120$"),
        ("gone", r"\bresult\W{1,6}110\b|^retcode 110$"),
        ("unconfirmed", r"Timeout: NTEvent"),
        ("unsupported", r"^retcode 1?404$|不支持的Api|API_NOT_FOUND"),
        ("silent", r"^no answer (through another process )?within [\d.]+ s"),
        ("wordless", r"^retcode -?\d+$"),
        ("large", r"^the message is larger than \d+ MiB"),
        ("unloaded", r"^the client did not load "),
    )
)


def explain_error(raw: str) -> ErrorWords:
    """The words for ``raw``, as it is on record, in the language of the moment.

    A text that is not known is its own sentence; "" for "".
    """
    text = raw.strip()
    if not text:
        return ErrorWords("")
    if text == OUT_OF_CALLS:
        return ErrorWords(
            _("The model used up its calls before it had an answer."),
            _("Allow the persona more model calls if it needs them."),
        )
    if (said := _(text)) != text:  # a sentence of the program's own
        return ErrorWords(said)
    known = explain_model_error(text) or _explain_client_error(text) or explain_network_error(text)
    return known or ErrorWords(text)


def _explain_client_error(raw: str) -> ErrorWords | None:
    name = next((name for name, pattern in _CLIENT if pattern.search(raw)), "")
    return ErrorWords(*_client_words(name), raw) if name else None


def _client_words(name: str) -> tuple[str, str]:
    return {
        "muted": (
            _("QQ refused it: the account is muted in this group."),
            _("It speaks again when the mute has ended."),
        ),
        "gone": (_("QQ refused it: the account is no longer in this group."), ""),
        "unconfirmed": (
            _("QQ did not confirm the message; it may have arrived, or been held back."),
            _("Look into the chat. If nothing arrives there for long, sign in to QQ by hand."),
        ),
        "unsupported": (
            _("The OneBot client does not know this action."),
            _("Update the client, or use one that has it."),
        ),
        "silent": (
            _("The OneBot client did not answer in time; the message may have been sent."),
            _("See whether the client still runs, and its log."),
        ),
        "wordless": (
            _("The OneBot client refused it without saying why."),
            _("Its own log says more."),
        ),
        "large": (
            _("The message is too large for the client."),
            _("Send smaller pictures or files."),
        ),
        "unloaded": (
            _("The OneBot client could not load a picture or file."),
            _("Can the client reach this address? In a container, 127.0.0.1 is the container."),
        ),
    }[name]
