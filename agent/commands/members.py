"""The commands against members of a group: each is one call of the tool that does it, on record,
whether or not that is offered to models. No model is called."""

import re
import time
from dataclasses import replace
from typing import Any, NamedTuple

from agent.chat.message_run import MessageRun, build_tool_context
from agent.commands.call import CommandCall, tell_usage
from agent.domain.commands import Command, CommandName
from agent.domain.errors import choose_language, pick_sentence
from agent.domain.group_acts import MOST_MINUTES, UNKNOWN
from agent.record.runs.steps import NewCall, NewStep
from agent.run.model_call import elapsed_ms
from agent.run.services import RunServices
from agent.run.tool_results import call_outcome
from tools.contract import ToolExecutionResult, ToolInvocation
from tools.models.tool_config import AllowedCallers, ToolScope, ToolVisibility
from tools.registry.catalogue import FAILURE, failed_result

_MENTION = re.compile(r"\[@([^\]\s]{1,64})\]")
_SPAN = re.compile(r"(\d{1,9})\s*(m|min|分|分钟|h|小时|d|天)?", re.IGNORECASE)
_UNITS = {"h": 60, "小时": 60, "d": 1_440, "天": 1_440}
_TOOLS = {
    CommandName.MUTE: "mute_member",
    CommandName.UNMUTE: "unmute_member",
    CommandName.KICK: "kick_member",
}
CALL_ID = "command"
BAD_SPAN = ("禁言的时间是 1 分钟到 30 天。", "A mute takes from one minute to 30 days.")


class WantedCall(NamedTuple):
    tool: str
    arguments: dict[str, Any]


def read_wanted(command: Command) -> WantedCall | None:
    """The call that a command orders; None where it is not written like one: with exactly one
    mention or number, and to mute a time."""
    people = _MENTION.findall(command.arguments)
    rest = _MENTION.sub(" ", command.arguments).strip()
    if not people:
        first, _, rest = rest.partition(" ")
        people, rest = [first] if first else [], rest.strip()
    if len(people) != 1:
        return None
    given: dict[str, Any] = {"user_id": people[0]}
    if command.name is not CommandName.MUTE:
        return None if rest else WantedCall(_TOOLS[command.name], given)
    if (span := _SPAN.fullmatch(rest)) is None:
        return None
    given["minutes"] = int(span[1]) * _UNITS.get((span[2] or "m").lower(), 1)
    return WantedCall(_TOOLS[command.name], given)


async def act(run: MessageRun, call: CommandCall) -> str:
    """Make the call that is ordered, once; what came of it in the chat's language, "" where nothing
    is ordered. One that a crash cut off is of unknown outcome, and is not made again."""
    wanted, journal = read_wanted(call.command), run.sender.journal
    if wanted is None:
        return ""
    language = choose_language(call.message.text, call.persona.language)
    if not 1 <= wanted.arguments.get("minutes", 1) <= MOST_MINUTES:
        return pick_sentence(BAD_SPAN, "", language)
    recorded = [one for step in run.active.steps for one in step.calls]
    if recorded and recorded[0].result:
        return recorded[0].result
    pk, begun = (recorded[0].pk if recorded else 0), time.monotonic()
    if recorded:
        result = failed_result(wanted.tool, pick_sentence(UNKNOWN, "", language), unknown=True)
    else:
        new = NewCall(CALL_ID, wanted.tool, wanted.arguments, call.message.sender_id)
        step = NewStep(run.active.run_pk, 1, request=[], tools=[], response=None, calls=(new,))
        (pk,) = await journal.record_step(step)
        result = await _call(run, call, wanted, pk, language)
    text = result.get_history_content().removeprefix(FAILURE)
    result.metadata["decided_by"] = call.message.sender_id
    await journal.finish_call(call_outcome(pk, result, text, elapsed_ms(begun)))
    return text


async def _call(
    run: MessageRun, call: CommandCall, wanted: WantedCall, pk: int, language: str
) -> ToolExecutionResult:
    """Make the call, for which no row has to be on: only its limits count."""
    services = RunServices(sender=run.sender, actions=call.services.actions)
    context = build_tool_context(call.message, call.account, services, own_role="owner")
    context.metadata["language"] = language
    rows = run.sender.journal.record.live.current.tools
    open_row = replace(
        rows.get(wanted.tool) or await call.services.registry.find_settings(wanted.tool),
        enabled=True,
        visibility=ToolVisibility.VISIBLE.value,
        scope=ToolScope.GROUP.value,
        allowed=AllowedCallers.EVERYONE.value,
    )
    registry = call.services.registry.under(lambda: {wanted.tool: open_row})
    invocation = ToolInvocation(
        wanted.tool,
        wanted.arguments,
        call_id=CALL_ID,
        session_id=context.session_id,
        stream_id=context.stream_id,
        call_pk=pk,
    )
    return await registry.invoke(invocation, context, approved=True)


def tell_acted(call: CommandCall) -> str:
    return call.acted or tell_usage(call.command.name, call.manners.command_prefix)
