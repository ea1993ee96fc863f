"""Wishes of operators that one tool call ends, whatever process works on it.

Only that process knows what it comes to, and puts it on record: of unknown outcome, unless it had
ended before it could be stopped.
"""

from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q
from django.utils.translation import gettext_noop

from agent.domain.states import ActKind, MessageReason, RunState, ToolCallState
from agent.models import Run, ToolCall
from agent.record.waiting.operator_acts import author_name, record_act

STOPPED = gettext_noop("an operator stopped the call; it may have had its effect")
#: Calls that a process works on: in a run, or after it.
UNDER_WAY = Q(state=ToolCallState.RUNNING, run__state=RunState.RUNNING) | (
    Q(state=ToolCallState.PENDING) & ~Q(claimed_by="")
)


def can_stop(call: ToolCall, run: Run) -> bool:
    """Whether ``call`` of ``run`` is under way in a chat, and nobody has stopped it yet. No
    query."""
    is_at_work = call.state == ToolCallState.RUNNING and run.state == RunState.RUNNING
    is_later = call.state == ToolCallState.PENDING and bool(call.claimed_by)
    return (is_at_work or is_later) and call.stopped_by is None and run.session_id is not None


def ask_to_stop(session_pk: int, call_pk: int, author: User | AnonymousUser) -> ToolCall | None:
    """Have a call of a chat stopped, on record; None where it is not under way any more."""
    calls = ToolCall.objects.filter(UNDER_WAY, pk=call_pk, run__session=session_pk)
    call = calls.exclude(run__message__reason=MessageReason.COMMAND).first()
    if call is None or not ToolCall.objects.filter(pk=call_pk, stopped_by=None).update(
        stopped_by=author_name(author)
    ):
        return None
    run = call.run
    record_act(
        ActKind.STOP_CALL, session_pk, author, message=run.message, run=run, detail=call.tool_name
    )
    return call


def find_stopped(pks: Sequence[int]) -> list[int]:
    """Those of ``pks`` that somebody wants to end."""
    wanted = ToolCall.objects.filter(pk__in=pks, stopped_by__isnull=False)
    return list(wanted.order_by().values_list("pk", flat=True))
