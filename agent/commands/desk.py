"""Commands that are given in a chat: who may give them, what is done, and what is said."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from django.utils import translation
from django.utils.translation import gettext

from agent.chat.command_answers import StopAnswer
from agent.chat.message_run import MessageRun
from agent.chat.speaking import say_sentence
from agent.commands import admission, everybody, owners
from agent.commands.call import CommandCall, CommandServices
from agent.commands.explaining import explain
from agent.domain.commands import Command, CommandAudience, CommandName
from agent.domain.errors import choose_language
from agent.domain.states import MessageState, RunState
from agent.record.record import Record
from agent.record.runs.replies import RunCompletion
from agent.record.waiting.command_orders import CommandOrder, carry_out_commands, load_last_words
from tools.text.readable import shorten_text

State = MessageState
#: Characters of what is said of a command: one message.
MOST_CHARS = 4_000

ACTIONS: dict[CommandName, Callable[[CommandCall], str]] = {
    CommandName.HELP: everybody.tell_help,
    CommandName.RESET: everybody.reset_chat,
    CommandName.STOP: everybody.tell_stopped,
    CommandName.STATUS: everybody.tell_status,
    CommandName.WHY: explain,
    CommandName.ON: admission.speak_again,
    CommandName.OFF: admission.be_silent,
    CommandName.ALLOW: admission.allow_people,
    CommandName.DENY: admission.deny_people,
    CommandName.PERSONA: owners.choose_chat_persona,
    CommandName.MODEL: owners.choose_chat_model,
    CommandName.BUDGET: owners.set_budget,
}


@dataclass(frozen=True, slots=True)
class CommandDesk:
    """The :class:`agent.chat.command_answers.CommandAnswers` of a server; no model is called."""

    record: Record
    services: CommandServices

    async def answer(self, run: MessageRun, command: Command, stop: StopAnswer) -> None:
        """Carry ``command`` out, say what came of it, and record the end. Neither it nor what is
        said becomes history.

        What is changed is committed with the words for it: a crash before they are sent repeats
        no change, but for ``stop``, which is then nothing new.
        """
        call = self._build_call(run, command)
        if command.name is CommandName.STOP:
            asker = None if call.is_manager else run.message.sender_id
            call = replace(call, has_stopped=await stop(call.chat, asker))
        order = CommandOrder(run.active.run_pk, lambda: carry_out(call))
        text = await self.record.submit(carry_out_commands, order, claim=run.active.claim)
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

    def _build_call(self, run: MessageRun, command: Command) -> CommandCall:
        return CommandCall(
            command,
            run.message,
            run.pending.pk,
            run.pending.session_pk,
            run.active.persona,
            run.active.manners,
            run.active.account,
            self.services,
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
