"""The commands for owners that say who is answered in a chat: on and off, allow and deny. They run
in the database thread; each change is on record with its author and counts from the next message
on."""

import re
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext

from agent.commands.call import CommandCall
from agent.commands.usage import join_words, tell_usage
from agent.domain.manners import Audience, Manners
from agent.domain.types import ChatAddress
from agent.record.chats.chat_messages import find_sender
from agent.record.settings.chat_manners import change_chat_manners, find_chat_manners
from agent.record.settings.timed_silences import end_silence, silence_chat
from tools.models.row_validation import check_ids, parse_ids

_MENTION = re.compile(r"\[@([^\]]*)\]|@(?=\d)")
_GROUP = re.compile(r"(?:onebot:)?group:(\d{1,64})", re.ASCII)
_SPAN = re.compile(r"(\d{1,5})\s*(m|min|分|分钟|h|小时|d|天)?", re.IGNORECASE)
_UNITS = {"h": 60, "小时": 60, "d": 1_440, "天": 1_440}
MOST_MINUTES = 30 * 1_440
MOST_PEOPLE = 20


def speak_again(call: CommandCall) -> str:
    known = find_chat_manners(call.chat)
    if known is not None and known.silenced:
        end_silence(call.chat, call.author)
    if row := call.load_manners().find_silence(timezone.now()):
        return gettext(
            "This chat is still silenced, by “%(row)s”. That can be changed in the admin."
        ) % {"row": row}
    return gettext("I speak here again.")


def be_silent(call: CommandCall) -> str:
    minutes = _minutes(call.arguments)
    if minutes is None:
        return tell_usage(call.command.name, call.manners.command_prefix)
    end = timezone.now() + timedelta(minutes=minutes) if minutes else None
    silence_chat(call.chat, end, call.author)
    if end is None:
        return gettext("I am silent here from now on. Owners can still give commands.")
    return gettext("I am silent here until %(time)s. Owners can still give commands.") % {
        "time": timezone.localtime(end).strftime("%m-%d %H:%M")
    }


def _minutes(words: str) -> int | None:
    """0 for no end; None for what is no span of time."""
    found = _SPAN.fullmatch(words)
    if not words or found is None:
        return None if words else 0
    minutes = int(found[1]) * _UNITS.get((found[2] or "m").lower(), 1)
    return minutes if 0 < minutes <= MOST_MINUTES else None


def allow_people(call: CommandCall) -> str:
    """Take people off the chat's list of those not answered; where only listed people are
    answered, list them."""
    if group := _group(call):
        change_chat_manners(group, call.author, answered=Audience.EVERYBODY)
        return gettext("Group %(group)s is answered.") % {"group": group.peer_id}
    people = _people(call)
    if not people:
        return tell_usage(call.command.name, call.manners.command_prefix)
    _list_people(call, people)
    manners = call.load_manners()
    still = {
        "denied_people": [one for one in people if one in manners.denied_people],
        "answered": [one for one in people if _is_left_out(call, manners, one)],
    }
    for field, kept_out in still.items():
        if kept_out:
            return gettext("Still not answered, by “%(row)s”: %(people)s.") % {
                "row": manners.said_by.get(field, ""),
                "people": join_words(kept_out),
            }
    return gettext("Answered here: %(people)s.") % {"people": join_words(people)}


def _list_people(call: CommandCall, people: Sequence[str]) -> None:
    row, listed = find_chat_manners(call.chat), call.manners.allowed_people
    fields = {}
    if row is not None and row.denied_people:
        denied = [one for one in parse_ids(row.denied_people) if one not in people]
        fields["denied_people"] = "\n".join(denied)
    if listed:
        own = parse_ids(row.allowed_people if row else "") or sorted(listed)
        fields["allowed_people"] = "\n".join(dict.fromkeys([*own, *people]))
    if fields:
        change_chat_manners(call.chat, call.author, **fields)


def _is_left_out(call: CommandCall, manners: Manners, person: str) -> bool:
    """Whether somebody else is answered here alone; whether the person is a friend is not known."""
    if person in call.account.owners and manners.answered != Audience.NOBODY:
        return False
    return manners.leaves_out(person, is_friend=call.chat.kind == "private")


def deny_people(call: CommandCall) -> str:
    """Put people on the chat's list of those not answered."""
    if group := _group(call):
        change_chat_manners(group, call.author, answered=Audience.NOBODY)
        return gettext("Group %(group)s is not answered any more.") % {"group": group.peer_id}
    people = _people(call)
    if not people:
        return tell_usage(call.command.name, call.manners.command_prefix)
    if owners := [one for one in people if one in call.account.owners]:
        return gettext("Owners are always answered: %(people)s.") % {"people": join_words(owners)}
    row = find_chat_manners(call.chat)
    denied = dict.fromkeys([*parse_ids(row.denied_people if row else ""), *people])
    change_chat_manners(call.chat, call.author, denied_people="\n".join(denied))
    return gettext("Not answered here any more: %(people)s.") % {"people": join_words(people)}


def _people(call: CommandCall) -> list[str]:
    """The people that are meant: by their ids, by mentions, or by the message that is quoted."""
    words = _MENTION.sub(r" \1 ", call.arguments)
    if not words.strip():
        sender = find_sender(call.session_pk, call.quoted_id)
        return [sender] if sender else []
    known = parse_ids(words)
    is_fine = not check_ids(words) and all(one.isdecimal() for one in known)
    return known if is_fine and len(known) <= MOST_PEOPLE else []


def _group(call: CommandCall) -> ChatAddress | None:
    """The group that is meant; owners can say that in their private chats alone."""
    found = _GROUP.fullmatch(call.arguments)
    if found is None or call.chat.kind != "private":
        return None
    return ChatAddress(call.chat.account, "group", found[1], call.chat.platform)
