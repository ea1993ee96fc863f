"""How often a tool was called in a chat today: counted on record, so that kills forget nothing."""

from datetime import datetime, time

from django.db.models import Q
from django.utils import timezone

from agent.models import ToolCall
from agent.record.chats.chat_record import find_address
from agent.record.record import Record
from agent.record.settings.manners import MannersTable
from tools.contract import ToolInvocation
from tools.local_time import find_zone
from tools.refusals import CallVerdict, RefusalReason, ToolRefusal

_MADE = (CallVerdict.ALLOWED.value, CallVerdict.APPROVED.value)


def begin_call(call_pk: int, limit: int, begins: bool, manners: MannersTable) -> bool:
    """Whether the chat of a call may have it made today, which is its zone's day. Where it
    ``begins``, it counts from now on; an approved one for the day of the approval."""
    call = ToolCall.objects.select_related("run__session").get(pk=call_pk)
    if call.run.session is None:
        return True
    zone = find_zone(manners.find(find_address(call.run.session)).zone)
    today = datetime.combine(timezone.now().astimezone(zone).date(), time(), zone)
    is_today = Q(created_at__gte=today) | Q(approval__decided_at__gte=today)
    made = ToolCall.objects.filter(is_today, tool_name=call.tool_name, verdict__in=_MADE)
    if made.filter(run__session_id=call.run.session_id).exclude(pk=call_pk).count() >= limit:
        return False
    if begins:
        ToolCall.objects.filter(pk=call_pk).update(verdict=CallVerdict.ALLOWED)
    return True


async def find_day_limit(
    record: Record, invocation: ToolInvocation, limit: int, begins: bool
) -> ToolRefusal | None:
    """The :data:`tools.registry.registry.DayLimit` of calls on record; others have none."""
    manners = record.live.current.manners
    if not invocation.call_pk or await record.submit(
        begin_call, invocation.call_pk, limit, begins, manners
    ):
        return None
    text = f"本会话今天已经执行了 {limit} 次 {invocation.tool_name}，达到了每天的上限。"
    return ToolRefusal(RefusalReason.RATE_LIMITED, f"{text}请如实告诉用户，不要重试。")
