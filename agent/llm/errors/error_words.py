"""What an error of a model call says, told by its text on record, in words for people. Pure.

The texts are those of :mod:`agent.llm.errors.failures` and of whoever raises
:class:`agent.domain.errors.LLMError`; they stay as they are.
"""

import re

from django.utils.translation import gettext as _

from agent.domain.budgets import name_budget, parse_shortage
from agent.domain.errors import THEN
from agent.llm.errors.fault_words import (
    CERTIFICATE,
    FAKE_PROXY,
    NO_CHAT,
    OTHER_PROTOCOL,
    TLS,
    TOO_SLOW,
    WEB_PAGE,
    explain_fault,
)
from agent.llm.errors.refusals import RefusalKind, classify_refusal
from tools.text.error_words import ErrorWords, explain_network_error

_ANSWERED = re.compile(r"the endpoint answered (\d{3})( with a web page\b[^:]*)?: (.*)", re.DOTALL)
_SAID = re.compile(r"the endpoint answered with an error: (.*)|holds no choices: (.*)", re.DOTALL)
_SHAPES = (
    (r"cannot be reached: its certificate is not trusted", CERTIFICATE),
    (r"cannot be reached: it does not speak TLS", TLS),
    (r"cannot be reached: a proxy took over its name", FAKE_PROXY),
    (r"\bprotocol; enter|Ollama's own protocol", OTHER_PROTOCOL),
    (r"not JSON but a web page|the answer is a web page", WEB_PAGE),
    (r"no answer from the model within|stopped in the middle of its answer", TOO_SLOW),
    (r"it was not asked within .* more calls are waiting", RefusalKind.LIMITED),
    (r"the key holds a line break", RefusalKind.WRONG_KEY),
    (r"kept back by a content filter|finish_reason: content_filter", RefusalKind.CONTENT_FILTER),
    (
        r"the answer is not JSON|is not a JSON object|holds no choices|first choice holds no"
        r"|not a stream of events|no list of models|more than [\d,]+ values|holds no text"
        r"|the address of the endpoint is none|the stream ended in the middle",
        NO_CHAT,
    ),
)
_KNOWN = tuple((re.compile(pattern, re.DOTALL), name) for pattern, name in _SHAPES)
_SILENT = re.compile(r"the model answered with nothing")


def explain_model_error(raw: str) -> ErrorWords | None:
    """The words for ``raw``; None where it is none of a model call that is known. Of endpoints that
    were asked one after the other, the cause of the first one stands first."""
    first, *later = raw.split(THEN)
    if not later:
        return _explain_one(raw)
    told = _explain_one(first) or ErrorWords(first)
    following = [found.sentence if (found := _explain_one(one)) else one for one in later]
    others = " ".join(one for one in dict.fromkeys(following) if one != told.sentence)
    sentence = told.sentence
    if others:
        words = {"first": sentence, "others": others}
        sentence = _("%(first)s Endpoints asked after it: %(others)s") % words
    return ErrorWords(sentence, told.advice, raw)


def _explain_one(raw: str) -> ErrorWords | None:
    if told := _explain_shortage(raw):
        return told
    if name := _name(raw):
        return _told(name, raw)
    if _SILENT.search(raw):
        return ErrorWords(
            _("The model answered with nothing."),
            _("Ask again; if it happens often, choose another model or set thinking otherwise."),
            raw,
        )
    if "the endpoint cannot be reached" in raw:
        return explain_network_error(raw) or _told(RefusalKind.DOWN, raw)
    return None


def _explain_shortage(raw: str) -> ErrorWords | None:
    found = parse_shortage(raw)
    if found is None:
        return None
    name, shortage = found
    text = _("The budget “%(name)s” did not allow it.")
    if shortage is not None:
        text = _("The budget “%(name)s” did not allow it: %(shortage)s.")
    words = {"name": name_budget(name), "shortage": shortage.words if shortage else ""}
    advice = _("Raise it under “Budgets”, or wait until its time is over.")
    return ErrorWords(text % words, advice, raw)


def _name(raw: str) -> str:
    if found := _ANSWERED.search(raw):
        status, page, said = int(found[1]), found[2], found[3]
        if said.startswith("it sends to "):
            return RefusalKind.WRONG_ADDRESS
        shape = _shape(raw)
        if shape == OTHER_PROTOCOL:
            return shape
        return classify_refusal(status, "<" if page else said)
    if name := _shape(raw):
        said = next((found[1] or found[2] for found in [_SAID.search(raw)] if found), "")
        return classify_refusal(400, said) if name == NO_CHAT and said else name
    if found := _SAID.search(raw):
        return classify_refusal(400, found[1] or "")
    return ""


def _shape(raw: str) -> str:
    return next((str(name) for pattern, name in _KNOWN if pattern.search(raw)), "")


def _told(name: str, raw: str) -> ErrorWords:
    own = {
        RefusalKind.TOO_LONG: (
            _("What was sent does not fit into the model's window."),
            _("Enter the model's true window at its endpoint, or choose one with a larger one."),
        ),
        RefusalKind.CONTENT_FILTER: (
            _("The content filter of the provider refused it."),
            _("Nothing can be done about the words of others; another provider may be milder."),
        ),
        RefusalKind.DOWN: (
            _("The model endpoint has trouble itself."),
            _("Try later. A second endpoint for the same role would be asked meanwhile."),
        ),
    }
    if name in own:
        return ErrorWords(*own[RefusalKind(name)], raw)
    told = explain_fault(name)
    return ErrorWords(_("Model endpoint: %s") % told.text, told.advice, raw)
