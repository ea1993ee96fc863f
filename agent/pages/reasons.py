"""Why a message is answered or not, in words: the reason, and the row or fact behind it."""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext

from agent.domain import answer_triggers, states
from agent.models import Message
from tools.admin.record_pages import label_of

#: Those that lists on the account's own page gave too, before manners had them.
OF_ACCOUNTS = frozenset({states.MessageReason.BLOCKED, states.MessageReason.NOT_LISTED})


def names_source(message: Message) -> bool:
    """Whether the detail of ``message`` is a name or a word, and no sentence."""
    if message.reason in states.BY_RULES:
        return message.state == states.MessageState.ANSWERED
    return (
        message.reason in answer_triggers.OF_ROWS or message.reason == states.MessageReason.PAUSED
    )


def reason_source(message: Message, detail: str) -> str:
    """Who or what keeps the bot silent, or has it speak, where :func:`names_source`; "" for
    others."""
    if message.reason == states.MessageReason.PAUSED:
        return str(dict(states.PauseReason.choices).get(detail, detail))
    if message.reason in states.BY_RULES and names_source(message) and detail:
        return _row_link("eventrule", gettext("event rule"), detail)
    if message.reason not in answer_triggers.OF_ROWS:
        return ""
    if detail:
        return _row_link("manners", gettext("manners"), detail)
    if message.reason in OF_ACCOUNTS:
        return gettext("by the lists on the bot’s page")
    if message.reason == states.MessageReason.GROUPS_OFF:
        return "GROUP_REPLY_ON_MENTION"
    return ""


def _row_link(model: str, label: str, name: str) -> str:
    address = reverse(f"admin:agent_{model}_changelist")
    query = urlencode({"q": name})
    return format_html('{}: <a href="{}?{}">{}</a>', label, address, query, name)


def reason_words(message: Message, detail: str) -> str:
    """The reason and what is behind it, in one line; "" without a reason."""
    if not message.reason:
        return ""
    source = reason_source(message, detail)
    if not source:
        return label_of(states.MessageReason, message.reason)
    return format_html("{} ({})", label_of(states.MessageReason, message.reason), source)
