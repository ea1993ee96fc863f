"""The command that takes an answer back: what is tried, and what is said of it then."""

from collections.abc import Iterable, Iterator

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
from tools.registry.policy import GROUP_ADMIN_ROLES
from tools.text.readable import shorten_text

#: Steps that are named, and characters of the words of each.
NAMED, WORDS_SHOWN = 20, 120
State = UndoState
TOLD = {
    State.DONE: _("Undone: %(what)s."),
    State.FAILED: _("Could not be undone: %(what)s."),
    State.UNKNOWN: _("Unknown whether undone, and not tried again: %(what)s."),
}


def find_asker(call: CommandCall) -> UndoAsker:
    role = call.message.sender_role
    leads = call.chat.kind == "group" and role in GROUP_ADMIN_ROLES
    person = call.message.sender_id
    return UndoAsker(person, person, call.is_owner, leads=leads and call.account.believes_senders)


async def undo(call: CommandCall, record: Record, undoing: Undoing, claim: Claim) -> str:
    """Take back what is meant, under the claim of the command's run; what is said besides what came
    of it, or why nothing was tried."""
    undoable = await undoing.registry.undoable()
    wish = UndoWish(
        call.session_pk,
        find_asker(call),
        undoable,
        call.message.quoted_id,
        command=call.message_pk,
    )

    def plan() -> tuple[list[int], str]:
        words = load_last_words(call.session_pk)
        with translation.override(choose_language(words, call.persona.language)):
            try:
                pks = plan_undo(wish)
            except UndoRefused as refusal:
                return [], str(refusal)
            if wish.asker.reach > UndoReach.WORDS or not has_more(pks, undoable):
                return pks, ""
            stays = gettext(
                "What I did besides stays. Owners, and who leads this group, can undo it."
            )
            return pks, stays

    pks, told = await record.submit(plan, claim=claim)
    await undoing.carry_out(pks)
    return told


def tell_undone(call: CommandCall) -> str:
    """What came of it."""
    return "\n".join(
        filter(None, [*tell_steps(load_undo_steps(command=call.message_pk)), call.told])
    )


def tell_steps(steps: Iterable[ToldStep]) -> Iterator[str]:
    """Line by line: what was undone, what was not and why, and of what nobody knows."""
    found = list(steps)
    for state, told in TOLD.items():
        if named := list(_name([step for step in found if step.state == state])):
            yield gettext(told) % {"what": join_words(named)}


def _name(steps: list[ToldStep]) -> Iterator[str]:
    """Messages that ended alike together, and the tools of calls."""
    alike: dict[str, int] = {}
    for step in steps:
        if step.kind == UndoKind.MESSAGE:
            alike[step.words] = alike.get(step.words, 0) + 1
    for said, count in alike.items():
        number = ngettext("%(count)d message", "%(count)d messages", count) % {"count": count}
        yield _because(number, said)
    for step in [step for step in steps if step.kind != UndoKind.MESSAGE][:NAMED]:
        name = step.tool_name
        if step.kind == UndoKind.STATE:
            name = gettext("the state that %(tool)s had changed") % {"tool": name}
        yield _because(name, step.words)


def _because(what: str, words: str) -> str:
    return f"{what} ({shorten_text(words, WORDS_SHOWN)})" if words else what
