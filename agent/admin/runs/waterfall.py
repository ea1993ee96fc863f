"""When a run did what: its rows as bars over time, by the times on record alone. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from agent.models import Message, Run, Step, ToolCall
from agent.pages import run_facts
from agent.record.runs.deferred_calls import OPEN
from agent.record.waiting.call_stops import can_stop
from tools.admin.record_pages import label_of

#: Units across the whole time, and the width of the thinnest bar.
WIDTH, THINNEST = 1000, 4
BAD = ("failed", "unknown", "refused", "expired", "interrupted")


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """Something that took from ``begin`` to ``end``; without an end that is not on record, or not
    there yet. ``href`` leads to what else is known of it."""

    kind: str
    label: str
    begin: datetime
    end: datetime | None
    href: str = ""
    level: int = 0
    note: str = ""
    is_bad: bool = False
    #: Whether the picture has to reach to its end.
    is_bounding: bool = True
    #: The key of a call that can be stopped, 0 for anything else.
    stoppable: int = 0


def build_waterfall(rows: run_facts.RunRows, now: datetime) -> dict[str, Any]:
    """What is on record of ``rows``, in the order in which it happened: ``bars``, and the
    ``total`` time in words."""
    inside = {call.pk for call in rows.calls}
    sent = (_sending(one, 0) for one in rows.messages if one.tool_call_id not in inside)
    spans = list(chain(_before(rows), _inside(rows), sent))
    run = rows.run
    ends = [one.end for one in spans if one.end and one.is_bounding]
    begin = min([run.started_at, *(one.begin for one in spans)])
    last = now if run.state == Run.State.RUNNING else run.finished_at
    end = max([run.started_at, *filter(None, [last]), *ends, *(one.begin for one in spans)])
    seconds = max((end - begin).total_seconds(), 0.001)
    bars = [_bar(one, begin, end, seconds) for one in spans]
    return {"bars": bars, "total": format_span(end - begin)}


def format_span(time: timedelta) -> str:
    """A time as people read it: ``340 ms``, ``2.31 s``, ``3 min 20 s``."""
    seconds = time.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _bar(span: TimelineSpan, begin: datetime, end: datetime, seconds: float) -> dict[str, Any]:
    """A span as it is drawn, in units of :data:`WIDTH`: a mark is a moment, ``after`` the time from
    the beginning of all to its own, in words."""

    def offset_of(at: datetime) -> int:
        return round(min(max((at - begin).total_seconds() / seconds, 0), 1) * WIDTH)

    is_mark = span.end is None or span.end <= span.begin
    x = min(offset_of(span.begin), WIDTH - THINNEST)
    after = format_span(span.begin - begin)
    is_timed = span.end is not None and span.kind != "decision"
    return {
        "span": span,
        "x": x,
        "width": THINNEST if is_mark else max(offset_of(span.end or end) - x, THINNEST),
        "took": format_span((span.end or end) - span.begin) if is_timed else "",
        "after": after,
        "title": _("after %(time)s") % {"time": after},
        "is_mark": is_mark,
    }


def _before(rows: run_facts.RunRows) -> Iterator[TimelineSpan]:
    """From the message to the first model call."""
    run, asked = rows.run, rows.asked
    if asked is not None and not run.trial_of_id:
        for one in rows.merged:
            at, note = one.created_at, _("answered together")
            yield TimelineSpan("decision", _("received"), at, at, "#decision", note=note)
        at = asked.created_at
        reason = asked.get_reason_display() if asked.reason else ""
        yield TimelineSpan("decision", _("received, decided"), at, at, "#decision", note=reason)
        if run.started_at > at:
            yield TimelineSpan("wait", _("waited for its turn"), at, run.started_at, "#decision")
    if rows.steps:
        first = _asked_at(rows.steps[0], run)
        if first > run.started_at:
            yield TimelineSpan("context", _("media and context"), run.started_at, first, "#context")


def _asked_at(step: Step, run: Run) -> datetime:
    """When a model call began: a step is put on record when it is over."""
    return max(step.created_at - timedelta(milliseconds=step.latency_ms), run.started_at)


def _inside(rows: run_facts.RunRows) -> Iterator[TimelineSpan]:
    """The model calls, and inside each what it set off."""
    for step in rows.steps:
        begin = min(_asked_at(step, rows.run), step.created_at)
        href = f"#step-{step.number}"
        asked = step.model or step.endpoint_name or ""
        label = _("step %(number)s: model") % {"number": step.number}
        if step.phase == Step.Phase.TIMING:
            label = _("step %(number)s: timing gate") % {"number": step.number}
        cost = run_facts.format_cost(step.cost_nano, step.currency)
        tokens = f"{step.input_tokens:,} + {step.output_tokens:,}"
        note = " · ".join(filter(None, [asked, tokens, cost]))
        yield TimelineSpan("model", label, begin, step.created_at, href, 0, note, bool(step.error))
        yield from _attempts(step, begin, href)
        yield from _calls(rows.made.get(step.pk, ()), rows)


def _attempts(step: Step, begin: datetime, href: str) -> Iterator[TimelineSpan]:
    """Endpoints that were asked in vain, one after the other."""
    for attempt in step.attempts or ():
        end = min(begin + timedelta(milliseconds=attempt["milliseconds"]), step.created_at)
        label = _("asked in vain: %(endpoint)s") % {"endpoint": attempt["endpoint"]}
        yield TimelineSpan("attempt", label, begin, end, href, 1, is_bad=True)
        begin = end


def _calls(calls: Iterable[ToolCall], rows: run_facts.RunRows) -> Iterator[TimelineSpan]:
    """Calls of one answer, which are made one after the other from the moment it is on record."""
    begin: datetime | None = None
    for call in calls:
        begin = max(begin or call.created_at, call.created_at)
        took = call.duration_ms
        end = None if took is None else begin + timedelta(milliseconds=took)
        state = label_of(ToolCall.State, call.state)
        is_asked = call.stopped_by is not None and call.state in OPEN
        note = _("is being stopped") if is_asked else state
        stoppable = call.pk if can_stop(call, rows.run) else 0
        href, is_bad = f"#call-{call.pk}", call.state in BAD
        yield TimelineSpan(
            "tool", call.tool_name, begin, end, href, 1, note, is_bad, stoppable=stoppable
        )
        yield from _of_call(call, rows)
        begin = end or begin


def _of_call(call: ToolCall, rows: run_facts.RunRows) -> Iterator[TimelineSpan]:
    if approval := rows.approvals.get(call.pk):
        asked, decided = approval.created_at, approval.decided_at
        label, state = _("an owner is asked"), approval.get_state_display()
        href, is_bad = f"#call-{call.pk}", approval.state in BAD
        yield TimelineSpan("wait", label, asked, decided, href, 2, state, is_bad, is_bounding=False)
    for run in rows.inner.get(call.pk, ()):
        href = reverse("admin:agent_run_change", args=(run.pk,))
        label = _("the agent's run #%(number)s") % {"number": run.pk}
        note, is_bad = run.persona or "", run.state in BAD
        yield TimelineSpan("inner", label, run.started_at, run.finished_at, href, 2, note, is_bad)
    yield from (_sending(one, 2) for one in rows.messages if one.tool_call_id == call.pk)


def _sending(message: Message, level: int) -> TimelineSpan:
    return TimelineSpan(
        "send",
        _("message sent"),
        message.created_at,
        message.settled_at,
        f"#sent-{message.pk}",
        level,
        message.get_state_display(),
        message.state in BAD,
    )
