"""The panel beside a chat: what was clicked there, or the chat itself. Its address is that of the
chat with ``?panel=``, so that it is there without a script too."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from agent.admin.chats import act, member_acts, session_list, who_answers
from agent.admin.chats.stream import bubble_rows, load_bubbles
from agent.admin.reminders import describe_repeat
from agent.admin.runs.waterfall import build_waterfall
from agent.models import ChatSession, Message, Reminder, Run
from agent.models.reminder import OPEN_STATES
from agent.pages import run_facts
from agent.pages.manners import describe_answering
from agent.record.settings.manners import ONEBOT
from agent.record.sums.tallies import find_silences
from tools.admin.record_pages import parse_row_number
from tools.text.readable import format_readable

#: Runs of one message that are shown, the newest.
MOST_RUNS = 3
#: Reminders that are shown.
MOST_REMINDERS = 50
#: Large columns of steps that are not shown here.
UNREAD = ("request", "sent", "response", "tools")


def describe_panel(session: ChatSession, request: HttpRequest, wanted: str) -> dict[str, Any]:
    """What ``wanted`` names: ``m12``, the message with that key; one of :data:`PANELS`; nothing for
    anything else."""
    describe = PANELS.get(wanted)
    number = parse_row_number(wanted.removeprefix("m"))
    if describe is not None:
        return {"panel": wanted, **describe(session, request)}
    if number and request.user.has_perm("agent.view_message"):
        return _message(session, request, number)
    return {}


def _message(session: ChatSession, request: HttpRequest, number: int) -> dict[str, Any]:
    """Why it was answered or not, and what was done for it."""
    bubbles = load_bubbles(session, list(bubble_rows(session).filter(pk=number)))
    if not bubbles:
        return {}
    message = bubbles[0].message
    runs = Run.objects.filter(pk__in=[message.run_id, *(run.pk for run in bubbles[0].runs)])
    may_see = request.user.has_perm("agent.view_run")
    shown = list(runs.order_by("-pk")[:MOST_RUNS]) if may_see else []
    may_choose = message.direction == Message.Direction.IN and bubbles[0].side == "person"
    is_ours = message.direction == Message.Direction.OUT or session.kind == ChatSession.Kind.GROUP
    may_recall = is_ours and bool(message.message_id) and message.recalled_at is None
    return {
        "panel": "message",
        "mutes": member_acts.list_mutes(session, request) if may_choose else (),
        "may_recall": may_recall and act.may(request, member_acts.MEMBER_ACTS["recall"]),
        "only_spans": who_answers.list_spans(session, request) if may_choose else (),
        "bubble": bubbles[0],
        "shown_runs": [_run(run, request) for run in shown],
        "may_stop": act.may(request, who_answers.STEERING_ACTS["stop-call"]),
    }


def _run(run: Run, request: HttpRequest) -> dict[str, Any]:
    names = ("step", "toolcall", "message", "approval")
    sees = frozenset(name for name in names if request.user.has_perm(f"agent.view_{name}"))
    rows = run_facts.load_run_rows(run, sees, *UNREAD)
    run_facts.hold_back_model(run, request.user)
    for step in rows.steps:
        run_facts.hold_back_endpoints(step, request.user)
    return {
        "run": run,
        "sums": run_facts.load_sums(run) if "step" in sees else None,
        "seconds": run_facts.format_run_duration(run),
        "waterfall": build_waterfall(rows, timezone.now()),
        "calls": [call for step in rows.steps for call in run_facts.describe_calls(step, rows)],
    }


def _chat(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    """Who answers, for how long not, and what happened today."""
    address, now = session_list.session_address(session), int(timezone.now().timestamp())
    place = f"{session.platform}:{session.account}:{session.key}"
    return {
        **describe_answering(address, request),
        "may_mute_group": bool(member_acts.list_mutes(session, request)),
        **session_list.describe_today(session),
        "silences": [
            (who, datetime.fromtimestamp(until, UTC)) for who, until in find_silences(place, now)
        ],
        "choices": list(_list_choices(session, request)),
    }


def _list_choices(session: ChatSession, request: HttpRequest) -> Iterator[tuple[Any, ...]]:
    """What the reader may choose for this chat alone: the act, its label, the rows, and the key of
    the one that is chosen."""
    address = session_list.session_address(session)
    for name, choice in who_answers.CHOICES.items():
        if session.platform == ONEBOT and act.may(request, who_answers.STEERING_ACTS[name]):
            yield name, choice.label, choice.list_rows(), choice.find_chosen(address)


def _settings(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    state = session.state if isinstance(session.state, dict) else {}
    return {"state": state, "state_json": format_readable(state)}


def _reminders(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    """What is still to be said here, the next first."""
    rows: list[Reminder] = []
    if request.user.has_perm("agent.view_reminder"):
        is_open = Reminder.objects.filter(session=session, state__in=OPEN_STATES)
        rows = list(is_open.order_by("due_at", "pk")[:MOST_REMINDERS])
    return {"reminders": [{"row": row, "repeat": describe_repeat(row)} for row in rows]}


PANELS: dict[str, Callable[[ChatSession, HttpRequest], dict[str, Any]]] = {
    "chat": _chat,
    "reminders": _reminders,
    "rules": session_list.describe_manners,
    "settings": _settings,
}
