"""Commands that are given in a chat: who may give them, what is done, and what is said."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from django.utils import timezone, translation
from django.utils.translation import gettext

from agent.chat.message_run import MessageRun, StopAnswer
from agent.chat.speaking import say_sentence
from agent.commands.call import (
    CommandCall,
    CommandServices,
    join_words,
    name_command,
    tell_usage,
)
from agent.domain.commands import MEMBER_COMMANDS, Command, CommandAudience, CommandName
from agent.domain.errors import choose_language
from agent.domain.manners import Audience, ChatManners
from agent.domain.states import MessageState, RunState
from agent.domain.types import ChatAddress
from agent.record.chats.chat_messages import find_sender
from agent.record.record import Record
from agent.record.runs.replies import RunCompletion
from agent.record.settings.chat_manners import change_chat_manners, find_chat_manners
from agent.record.settings.timed_silences import (
    answer_everybody,
    answer_only,
    end_silence,
    silence_chat,
)
from agent.record.waiting.command_orders import carry_out_command, load_last_words
from tools.local_time import begin_of_tomorrow
from tools.models.tool_config import check_ids, parse_ids
from tools.text.readable import shorten_text

if TYPE_CHECKING:
    from agent.chat.undoing import Undoing

_MENTION = re.compile(r"\[@([^\]]*)\]|@(?=\d)")
#: A word without a digit is no id, but a word.
_PERSON = re.compile(r"(?=.*\d)[\w-]{1,64}", re.ASCII)
_GROUP = re.compile(r"(?:onebot:)?group:([\w-]{1,64})", re.ASCII)
_SPAN = re.compile(r"(\d{1,5})\s*(m|min|分|分钟|h|小时|d|天)?", re.IGNORECASE)
_UNITS = {"h": 60, "小时": 60, "d": 1_440, "天": 1_440}
MOST_MINUTES = 30 * 1_440
#: A span of time that nobody takes for the id of a person.
_ONLY_SPAN = re.compile(r"\d{1,4}|\d{1,5}(m|min|分|分钟|h|小时|d|天)", re.IGNORECASE)
TOMORROW = frozenset({"tomorrow", "明天"})
MOST_PEOPLE = 20


def speak_again(call: CommandCall) -> str:
    known = find_chat_manners(call.chat)
    if known is not None and known.only_person:
        answer_everybody(call.chat, call.author)
    if known is not None and known.silenced:
        end_silence(call.chat, call.author)
    if row := call.load_manners().find_silence(timezone.now()):
        return gettext(
            "This chat is still silenced, by “%(row)s”. That can be changed in the admin."
        ) % {"row": row}
    return gettext("I speak here again.")


def be_silent(call: CommandCall) -> str:
    minutes = _minutes(call.command.arguments)
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


def answer_one(call: CommandCall) -> str:
    """Answer only one person for some time: whoever is named or quoted, or the owner himself."""
    *people, last = _MENTION.sub(r" \1 ", call.command.arguments).split() or [""]
    if last.casefold() in TOMORROW:
        end: datetime | None = begin_of_tomorrow()
    elif _ONLY_SPAN.fullmatch(last):
        minutes = _minutes(last)
        end = timezone.now() + timedelta(minutes=minutes) if minutes else None
    else:
        people, end = [*people, last], timezone.now() + timedelta(hours=1)
    named = " ".join(people).strip()
    found = _people(replace(call, command=Command(call.command.name, named)))
    if not (named or found):
        found = [call.message.sender_id]
    if call.chat.kind != "group" or end is None or len(found) != 1:
        return tell_usage(call.command.name, call.manners.command_prefix)
    answer_only(call.chat, found[0], end, call.author)
    return gettext(
        "Until %(time)s only %(person)s is answered here; others are heard. %(command)s ends it."
    ) % {
        "time": timezone.localtime(end).strftime("%m-%d %H:%M"),
        "person": found[0],
        "command": name_command(CommandName.ON, call.manners.command_prefix),
    }


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


def _is_left_out(call: CommandCall, manners: ChatManners, person: str) -> bool:
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
    words = _MENTION.sub(r" \1 ", call.command.arguments)
    if not words.strip():
        sender = find_sender(call.session_pk, call.message.quoted_id)
        return [sender] if sender else []
    known = parse_ids(words)
    is_fine = not check_ids(words) and all(map(_PERSON.fullmatch, known))
    return known if is_fine and len(known) <= MOST_PEOPLE else []


def _group(call: CommandCall) -> ChatAddress | None:
    """The group that is meant; owners can say that in their private chats alone."""
    found = _GROUP.fullmatch(call.command.arguments)
    if found is None or call.chat.kind != "private":
        return None
    return ChatAddress(call.chat.account, "group", found[1], call.chat.platform)


def _later(module: str, name: str) -> Callable[[CommandCall], str]:
    """The action ``name`` of a module of this room, which the first such command loads."""
    return lambda call: str(getattr(import_module(f"agent.commands.{module}"), name)(call))


State = MessageState
#: Characters of what is said of a command: one message.
MOST_CHARS = 4_000

ACTIONS: dict[CommandName, Callable[[CommandCall], str]] = {
    CommandName.HELP: _later("everybody", "tell_help"),
    CommandName.RESET: _later("everybody", "reset_chat"),
    CommandName.STOP: _later("everybody", "tell_stopped"),
    CommandName.UNDO: _later("undoing", "tell_undone"),
    CommandName.STATUS: _later("everybody", "tell_status"),
    CommandName.WHY: _later("explaining", "explain"),
    CommandName.ON: speak_again,
    CommandName.OFF: be_silent,
    CommandName.ONLY: answer_one,
    CommandName.ALLOW: allow_people,
    CommandName.DENY: deny_people,
    CommandName.PERSONA: _later("owners", "choose_chat_persona"),
    CommandName.MODEL: _later("owners", "choose_chat_model"),
    CommandName.BUDGET: _later("owners", "set_budget"),
    CommandName.REMIND: _later("reminding", "remind"),
    CommandName.REMINDERS: _later("reminding", "tell_reminders"),
    CommandName.UNREMIND: _later("reminding", "unremind"),
    **dict.fromkeys(MEMBER_COMMANDS, _later("members", "tell_acted")),
}


@dataclass(frozen=True, slots=True)
class CommandDesk:
    """The :class:`agent.chat.message_run.CommandAnswers` of a server; no model is called."""

    record: Record
    services: CommandServices
    find_undoing: "Callable[[], Undoing] | None" = None
    """What takes answers back; None where nothing can."""

    async def answer(self, run: MessageRun, command: Command, stop: StopAnswer) -> None:
        """Carry ``command`` out, say what came of it, and record the end. Neither it nor what is
        said becomes history.

        What is changed is committed with the words for it: a crash before they are sent repeats
        no change, but for ``stop``, which is then nothing new, and ``undo``, each step of which is
        on record by itself.
        """
        call = CommandCall(
            command,
            run.message,
            run.pending.pk,
            run.pending.session_pk,
            run.active.persona,
            run.active.manners,
            run.active.account,
            self.services,
        )
        claim = run.active.claim
        if command.name is CommandName.STOP:
            asker = None if call.is_manager else run.message.sender_id
            call = replace(call, has_stopped=await stop(call.chat, asker))
        elif command.name in MEMBER_COMMANDS and call.leads_members:
            from agent.commands.members import act

            call = replace(call, acted=await act(run, call))
        elif command.name is CommandName.UNDO and self.find_undoing is not None:
            from agent.commands.undoing import undo

            told = await undo(call, self.record, self.find_undoing(), claim)
            call = replace(call, told=told)
        text = await self.record.submit(
            carry_out_command, claim.run_pk, lambda: carry_out(call), claim=claim
        )
        outcome = await say_sentence(run, text) if text else None
        failed = outcome is not None and outcome.delivery.state == State.FAILED
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FINISHED,
                message_pk=run.pending.pk,
                message_state=State.FAILED if failed else State.ANSWERED if text else State.SILENT,
                detail=outcome.delivery.error if outcome and failed else "",
                final_text=text,
                outcome=outcome,
            )
        )


def carry_out(call: CommandCall) -> str:
    """Do what is ordered; what is said of it, in the language of the chat. Runs in the database
    thread."""
    words = load_last_words(call.session_pk)  # the command's own among them
    with translation.override(choose_language(words, call.persona.language)):
        if not call.may_give(call.command.name):
            return refuse(call)
        return shorten_text(ACTIONS[call.command.name](call), MOST_CHARS)


def refuse(call: CommandCall) -> str:
    """One sentence for somebody who may not give the command. Of those for owners nothing is said
    in a group, unless the bot was spoken to: a group of five hundred is not told what one of them
    may not do."""
    if call.command.name.audience is CommandAudience.MANAGERS:
        return gettext(
            "Only my owners, and the owner and the administrators of this group, can do that."
        )
    if call.chat.kind == "group" and not call.message.mentions_bot:
        return ""
    return gettext("Only owners can give this command.")
