"""What the errors of model endpoints mean in words, and what helps: one table."""

import re
import ssl

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.budgets import name_budget, parse_shortage
from agent.domain.errors import THEN, LLMError, LLMTimeout
from agent.llm.errors.failures import FAKE_IP, causes_of
from agent.llm.errors.refusals import RefusalKind, classify_refusal
from tools.text.error_words import ErrorWords, explain_network_error

CERTIFICATE, TLS, FAKE_PROXY = "certificate", "tls", "fake_ip"
OTHER_PROTOCOL, WEB_PAGE, TOO_SLOW, NO_CHAT = "protocol", "web_page", "too_slow", "no_chat"


def name_fault(error: LLMError) -> str:
    """What ``error`` comes from: one of the names above, or a
    :class:`agent.llm.errors.refusals.RefusalKind`."""
    causes, words = list(causes_of(error)), str(error)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return CERTIFICATE
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return TLS
    if any(FAKE_IP.search(str(cause)) for cause in causes):
        return FAKE_PROXY
    if "protocol; " in words or "Ollama's own protocol" in words:
        return OTHER_PROTOCOL
    if "not JSON but a web page" in words:
        return WEB_PAGE
    if isinstance(error, LLMTimeout) and error.kind in ("", RefusalKind.DOWN):
        return TOO_SLOW
    if not error.kind:
        return NO_CHAT
    return str(error.kind)


_FAULTS: dict[str, tuple[Promise, Promise]] = {
    RefusalKind.WRONG_KEY: (
        _("It refuses the key."),
        _(
            "The key is missing, wrong, or may not use this model. Copy it once more from the "
            "provider's page; a key of one region or platform is refused by another."
        ),
    ),
    RefusalKind.WRONG_REGION: (
        _("It does not serve this country or region."),
        _("Choose another provider, or another address of this one."),
    ),
    RefusalKind.NO_MONEY: (
        _("The account is out of money."),
        _("Top it up on the page of your provider; the key itself is good."),
    ),
    RefusalKind.UNKNOWN_MODEL: (
        _("It does not know this model, or this account may not use it."),
        _("Fetch the list of models and choose one; some must be switched on in the console."),
    ),
    RefusalKind.WRONG_ADDRESS: (
        _("There is no OpenAI-compatible API at this address."),
        _("Check the address: most end in /v1. The provider's documentation names it."),
    ),
    RefusalKind.TOO_LONG: (
        _("Its window is too small even for a short question with a tool."),
        _("Widen the window of the model: an agent wants 16,000 tokens at the very least."),
    ),
    RefusalKind.CONTENT_FILTER: (
        _("Its content filter refused the question."),
        _("Try again, or choose another model."),
    ),
    RefusalKind.NO_TOOLS: (
        _("It answers, but not when tools are offered to it."),
        _("Choose a model that can call tools (function calling)."),
    ),
    RefusalKind.NO_PICTURES: (
        _("It takes no pictures."),
        _("Take away the mark “sees pictures”, or choose a model that sees."),
    ),
    RefusalKind.NO_TEMPERATURE: (
        _("It refuses the temperature."),
        _("Leave temperature and top_p empty."),
    ),
    RefusalKind.NO_THINKING_SWITCH: (
        _("It refuses the switch of thinking."),
        _("Set thinking to “as the endpoint has it”, or choose the right provider."),
    ),
    CERTIFICATE: (
        _("Its certificate is not trusted."),
        _(
            "Check the machine's clock and the host. A server with a certificate of its own "
            "is reached by http:// in your own network, or once its certificate is installed "
            "on this machine."
        ),
    ),
    TLS: (
        _("It does not speak https at this port."),
        _("Enter the address with http:// if the server is in your own network."),
    ),
    FAKE_PROXY: (
        _("A proxy in fake-ip mode took over the name of the host (198.18.0.0/15)."),
        _(
            "Let the proxy pass this host directly, or switch its fake-ip mode to redir-host; "
            "check that the proxy is running."
        ),
    ),
    TOO_SLOW: (
        _("It did not answer within the time limit."),
        _(
            "Is the address right, does it need a proxy, is the model still being loaded? A "
            "slow machine wants a longer time limit, or “streamed”."
        ),
    ),
    RefusalKind.DOWN: (
        _("It cannot be reached, or has trouble itself."),
        _("Is the address right, is the endpoint running, is there a network? Or try later."),
    ),
    RefusalKind.LIMITED: (
        _("It is asked too often, or the account is over its limit."),
        _("Wait a minute; set “calls a minute” lower; see the page of your provider."),
    ),
    OTHER_PROTOCOL: (
        _("It speaks another protocol."),
        _("Enter the address of its OpenAI-compatible API; most end in /v1."),
    ),
    WEB_PAGE: (
        _("It answers with a web page, which is no API."),
        _("Check the address: most end in /v1. Is it the address of the provider's website?"),
    ),
    NO_CHAT: (
        _("What it answers cannot be read."),
        _("Is this the base address of an OpenAI-compatible API? Most end in /v1."),
    ),
}
_OTHER_FAULT = (
    _("It refuses the question."),
    _("See what it says; check the parameters, and whether the model is offered there."),
)


def explain_fault(name: str) -> ErrorWords:
    """The words for a fault that :func:`name_fault` names, in the language of the moment."""
    sentence, advice = _FAULTS.get(name, _OTHER_FAULT)
    return ErrorWords(str(sentence), str(advice))


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
        sentence = gettext("%(first)s Endpoints asked after it: %(others)s") % words
    return ErrorWords(sentence, told.advice, raw)


def _explain_one(raw: str) -> ErrorWords | None:
    if told := _explain_shortage(raw):
        return told
    if name := _name(raw):
        return _told(name, raw)
    if _SILENT.search(raw):
        return ErrorWords(
            gettext("The model answered with nothing."),
            gettext(
                "Ask again; if it happens often, choose another model or set thinking otherwise."
            ),
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
    text = gettext("The budget “%(name)s” did not allow it.")
    if shortage is not None:
        text = gettext("The budget “%(name)s” did not allow it: %(shortage)s.")
    words = {"name": name_budget(name), "shortage": shortage.words if shortage else ""}
    advice = gettext("Raise it under “Budgets”, or wait until its time is over.")
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
            gettext("What was sent does not fit into the model's window."),
            gettext(
                "Enter the model's true window at its endpoint, or choose one with a larger one."
            ),
        ),
        RefusalKind.CONTENT_FILTER: (
            gettext("The content filter of the provider refused it."),
            gettext(
                "Nothing can be done about the words of others; another provider may be milder."
            ),
        ),
        RefusalKind.DOWN: (
            gettext("The model endpoint has trouble itself."),
            gettext("Try later. A second endpoint for the same role would be asked meanwhile."),
        ),
    }
    if name in own:
        return ErrorWords(*own[RefusalKind(name)], raw)
    told = explain_fault(name)
    return ErrorWords(gettext("Model endpoint: %s") % told.sentence, told.advice, raw)
