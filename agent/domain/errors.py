"""The errors of a run, and who sees which text.

AgentError
├── LLMError          the model could not be asked, or answered nonsense, too much or nothing
│   ├── LLMTimeout    ... within LLM_TIMEOUT
│   └── BudgetSpent   it was not asked: a budget does not allow it
└── RunTimeout        the whole run took longer than RUN_TIMEOUT

:class:`ClaimLost` is no failure of a run: another process continues it.

``str(error)`` is for the record and the log, where the operator reads it; it may quote the
upstream. The chat gets only the text of :func:`build_apology`.
"""

import re
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from agent.domain.budgets import NO_REST, Shortage

#: Stands between the errors of endpoints that were asked one after the other.
THEN = "\nthen: "
HAN = re.compile(r"[\u3400-\u9fff]")
#: What the program writes for a segment that is no text, such as ``[图片]`` and ``[文件:a.txt]``.
PLACEHOLDER = re.compile(r"\[(?:[\u3400-\u9fff]{2,5}(?::[^\]]*)?|(?:json|xml):[^\]]*|@[^\]]*)\]")


class AgentError(Exception):
    """A run that cannot be completed."""


class LLMError(AgentError):
    """The model endpoint refused, failed, or sent something that is not a chat completion.

    ``is_free`` where it surely did nothing for it; without that it may have worked, and want to be
    paid.
    """

    is_free = False
    kind = ""
    """What it refused (:class:`agent.llm.errors.refusals.RefusalKind`), where that is known."""
    is_repeated = False
    """Whether ``kind`` may come from words that it was sent and repeats: it is believed for this
    call alone, and nothing is learnt from it."""
    retry_seconds: float = 0
    """After which the endpoint wants to be asked again (``Retry-After``); 0: it did not say."""
    attempts: "tuple[Any, ...]" = ()
    """The endpoints that were asked (:class:`agent.llm.requests.base.Attempt`), the last one
    included."""
    sent: "Any" = None
    """What the last of them was sent (:class:`agent.llm.requests.base.SentRequest`), where it was
    sent."""

    def __str__(self) -> str:
        """Where several endpoints were asked, the causes of all, the first one's first."""
        if len(self.attempts) > 1:
            return THEN.join(attempt.reason for attempt in self.attempts)
        return super().__str__()


class BudgetSpent(LLMError):  # noqa: N818 - the word says what happened
    """The model was not asked: too little of the budget ``name`` is left, as ``shortage`` says.

    ``action`` is what its row says (:class:`agent.domain.budgets.BudgetAction`), ``cheaper`` the
    key of the endpoint that answers instead, where it is that.
    """

    is_free = True

    def __init__(
        self, name: str, action: str, cheaper: int | None = None, shortage: Shortage = NO_REST
    ) -> None:
        super().__init__(shortage.on_record(name))
        self.name = name
        self.action = action
        self.cheaper = cheaper
        self.shortage = shortage


class LLMTimeout(LLMError):  # noqa: N818 - the word says what happened
    """No complete answer came within the time of one model call."""


class RunTimeout(AgentError):  # noqa: N818 - the word says what happened
    """The run's time is up. Messages it sent before are sent, and recorded as such."""


class ClaimLost(Exception):  # noqa: N818 - the word says what happened
    """Another process has taken the work over, or its row is gone. Nothing was written, and nothing
    may be sent."""


def choose_language(words: str, language: str = "") -> str:
    """The language of a fixed sentence in a chat: ``language`` where the persona has one, else
    Chinese if ``words`` hold Chinese, else LANGUAGE_CODE. What the program writes for pictures and
    such, in Chinese, is nobody's words."""
    typed = PLACEHOLDER.sub("", words)
    return language or ("zh-hans" if HAN.search(typed) else settings.LANGUAGE_CODE)


def pick_sentence(texts: tuple[str, str], words: str, language: str = "") -> str:
    """Of ``texts``, in Chinese and in English, that in the language of :func:`choose_language`."""
    chinese, english = texts
    return chinese if choose_language(words, language).startswith("zh") else english


def build_apology(words: str, language: str = "") -> str:
    """One short sentence for the chat, in the language of :func:`choose_language`."""
    with translation.override(choose_language(words, language)):
        return _(
            "Sorry, something went wrong and I cannot answer right now. Please try again later."
        )


def build_refusal_apology(words: str, language: str = "") -> str:
    """The same for an answer that was made, and that the client would not send."""
    with translation.override(choose_language(words, language)):
        return _("Sorry, my answer could not be sent here.")


class MediaError(Exception):
    """Media cannot be had, or not in this form. The text says why, to people and to the model."""
