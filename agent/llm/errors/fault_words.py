"""What is wrong with an endpoint, and what to do, in words for whoever set it up."""

import ssl
from typing import NamedTuple

from django.utils.translation import gettext as _

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.errors.failures import FAKE_IP, causes_of
from agent.llm.errors.refusals import RefusalKind

CERTIFICATE, TLS, FAKE_PROXY = "certificate", "tls", "fake_ip"
OTHER_PROTOCOL, WEB_PAGE, TOO_SLOW, NO_CHAT = "protocol", "web_page", "too_slow", "no_chat"


class FaultWords(NamedTuple):
    """``text``: what happened; ``advice``: what to do about it."""

    text: str
    advice: str


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


def explain_fault(name: str) -> FaultWords:
    """The words for a fault that :func:`name_fault` names, in the language of the moment."""
    return FaultWords(*(_refused(name) or _unreachable(name) or _strange(name)))


def _unreachable(name: str) -> tuple[str, str] | None:
    return {
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
    }.get(name)


def _refused(name: str) -> tuple[str, str] | None:
    table: dict[str, tuple[str, str]] = {
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
    }
    return table.get(name)


def _strange(name: str) -> tuple[str, str]:
    found = {
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
    }.get(name)
    return found or (
        _("It refuses the question."),
        _("See what it says; check the parameters, and whether the model is offered there."),
    )
