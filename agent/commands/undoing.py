"""The command that takes an answer back: what is tried, and what is said of it then."""

from collections import Counter
from collections.abc import Collection, Iterator

from django.utils import translation
from django.utils.translation import gettext, gettext_noop as _, ngettext

from agent.chat.undoing import Undoing
from agent.commands.call import CommandCall, join_words
from agent.domain.errors import choose_language
from agent.domain.states import Claim
from agent.domain.undo import UndoAsker, UndoKind, UndoReach, UndoState
from agent.record.record import Record
from agent.record.waiting.command_orders import load_last_words
from agent.record.waiting.undoing import (
    ToldStep,
    UndoRefused,
    UndoWish,
    has_more,
    load_undo_steps,
    plan_undo,
)
from tools.text.readable import shorten_text

#: What is named of each end, and characters of the words of each.
NAMED, WORDS_SHOWN = 20, 120
TOLD = {
    UndoState.DONE: _("Undone: %(what)s."),
    UndoState.FAILED: _("Could not be undone: %(what)s."),
    UndoState.UNKNOWN: _("Unknown whether undone, and not tried again: %(what)s."),
}


async def undo(call: CommandCall, record: Record, undoing: Undoing, claim: Claim) -> str:
    """Take back what is meant, under the claim of the command's run; what is said besides what came
    of it, or why nothing was tried."""
    undoable = await undoing.registry.undoable()
    pks, told = await record.submit(_plan, call, undoable, claim=claim)
    await undoing.carry_out(pks)
    return told


def _plan(call: CommandCall, undoable: frozenset[str]) -> tuple[list[int], str]:
    person, reach = call.message.sender_id, UndoReach.WORDS
    if call.is_owner:
        reach = UndoReach.EVERYTHING
    elif call.is_manager and call.chat.kind == "group":
        reach = UndoReach.CHAT
    asker, quoted = UndoAsker(person, person, reach), call.message.quoted_id
    wish = UndoWish(call.session_pk, asker, undoable, quoted, command=call.message_pk)
    words = load_last_words(call.session_pk)
    with translation.override(choose_language(words, call.persona.language)):
        try:
            pks = plan_undo(wish)
        except UndoRefused as refusal:
            return [], str(refusal)
        if reach > UndoReach.WORDS or not has_more(pks, undoable):
            return pks, ""
        stays = gettext("What I did besides stays. Owners, and who leads this group, can undo it.")
        return pks, stays


def tell_undone(call: CommandCall) -> str:
    """What came of it, line by line: what was undone, what was not and why, and of what nobody
    knows; or why nothing was tried."""
    steps, lines = load_undo_steps(command=call.message_pk), list[str]()
    for state, told in TOLD.items():
        named = [
            f"{what} ({shorten_text(words, WORDS_SHOWN)})" if words else what
            for what, words in _name([step for step in steps if step.state == state])
        ]
        if named:
            lines.append(gettext(told) % {"what": join_words(named[:NAMED])})
    return "\n".join(filter(None, [*lines, call.told]))


def _name(steps: Collection[ToldStep]) -> Iterator[tuple[str, str]]:
    """Messages that ended alike together, and the tools of calls; each with the words of its
    end."""
    alike = Counter(step.words for step in steps if step.kind == UndoKind.MESSAGE)
    for words, count in alike.items():
        yield ngettext("%(count)d message", "%(count)d messages", count) % {"count": count}, words
    for step in steps:
        name = step.tool_name
        if step.kind == UndoKind.STATE:
            name = gettext("the state that %(tool)s had changed") % {"tool": name}
        if step.kind != UndoKind.MESSAGE:
            yield name, step.words
