"""The commands that set, list and cancel reminders: what they do, and what is said then. They run
in the database thread, in the language of the chat; no model is called."""

import re

from django.utils import timezone
from django.utils.translation import gettext

from agent.commands.call import CommandCall, tell_usage
from agent.domain.reminders import MOST_TEXT, format_instant, pick_language
from agent.domain.states import ReminderState
from agent.record.reminders.book import (
    Asker,
    ReminderRefused,
    Wish,
    cancel,
    describe,
    find_open,
    list_reminders,
    load_own_calendar,
    set_reminder,
    show_words,
)
from agent.reminders.repeats import say_repeat
from agent.reminders.unclear import UnclearTime
from agent.reminders.when import split_when
from tools.local_time import find_zone

_MENTION = re.compile(r"\s*\[@([^\]\s]{1,64})\]\s*")
_NUMBER = re.compile(r"#?(\d{1,18})", re.ASCII)
SHOWN_CHARS = 200


def _asker(call: CommandCall) -> Asker:
    language = pick_language(call.message.text, call.persona.language)
    return Asker(
        call.session_pk,
        call.message.sender_id,
        is_owner=call.is_owner,
        zone=call.manners.zone,
        language=language,
    )


def remind(call: CommandCall) -> str:
    """Set a reminder: the longest beginning that is a time is when, the rest is the text."""
    words, asker = call.command.arguments, _asker(call)
    if not words:
        return tell_usage(call.command.name, call.manners.command_prefix)
    if len(words) > MOST_TEXT:
        return gettext("That is too long: at most %(most)d characters.") % {"most": MOST_TEXT}
    people = _MENTION.findall(words)
    words = _MENTION.sub(" ", words).strip()
    try:
        zone, calendar = find_zone(asker.zone), load_own_calendar()
        when, text = split_when(words, timezone.now(), zone, calendar)
        row = set_reminder(asker, Wish(text, when, mention=people))
    except UnclearTime as error:
        return error.say()
    except ReminderRefused as error:
        return str(error)
    values = {
        "number": row.pk,
        "at": format_instant(row.due_at, asker.zone),
        "text": show_words(row.text, SHOWN_CHARS),
    }
    if not row.repeat:
        return gettext("#%(number)d: at %(at)s I remind of “%(text)s”.") % values
    values["repeat"] = say_repeat(row.repeat)
    return gettext("#%(number)d: %(repeat)s, first at %(at)s, I remind of “%(text)s”.") % values


def tell_reminders(call: CommandCall) -> str:
    """One's own of this chat, an owner's all of it; in private one's own of other chats too."""
    asker, is_private = _asker(call), call.chat.kind == "private"
    lines, title = [], ""
    for row in list_reminders(asker, everywhere=is_private):
        if row.session_id != call.session_pk and title != str(row.session):
            title = str(row.session)
            lines.append(gettext("In %(chat)s:") % {"chat": show_words(title, SHOWN_CHARS)})
        lines.append(describe(row, asker.zone, shows_person=asker.is_owner))
    return "\n".join(lines) or gettext("There are no reminders here.")


def unremind(call: CommandCall) -> str:
    found = _NUMBER.fullmatch(call.command.arguments)
    if found is None:
        return tell_usage(call.command.name, call.manners.command_prefix)
    number = int(found[1])
    try:
        row = cancel(find_open(_asker(call), number))
    except ReminderRefused as error:
        return str(error)
    if row.state == ReminderState.DONE:
        return gettext("#%(number)d had just been said.") % {"number": number}
    values = {"number": number, "at": format_instant(row.due_at, call.manners.zone)}
    return gettext("#%(number)d (%(at)s) is cancelled.") % values
