"""What the operator's pages show beside the record: sums, a long run, notes, events, and accounts that
may not see every chat. Runs after ``record`` of :mod:`benchmarks.seeding`, in the same process or
another one."""

import itertools
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import models
from django.utils import timezone

from agent.domain.budgets import SpendKind
from agent.models import (
    ActivitySum,
    ChatGrant,
    ChatSession,
    Message,
    OperatorAct,
    Run,
    SpendSum,
    Step,
    ToolCall,
    ToolUse,
)
from agent.models.activity import WHOLE_DAY
from onebot.models import ClientEvent

#: Days of sums, of sums by hour, and of what was spent: a million rows where there are 3,000 chats.
DAYS, DAYS_OF_HOURS, DAYS_OF_SPENDING = 30, 4, 170
#: Steps of the long run, and letters of what each adds to its request.
STEPS, REQUEST_CHARS = 50, 100_000
CALLS_A_STEP = 3
#: Own chats: among them the one with a fifth of all messages, and small ones alone.
OWNERS = {"big-owner": (0, 1, 500), "small-owner": (7, 300, 900)}
EVENTS = 50_000
BATCH = 5_000


def seed_cockpit() -> None:
    sessions = list(ChatSession.objects.order_by("pk"))
    _write(ActivitySum, _sums(sessions))
    _write(ToolUse, _uses(sessions))
    _write(SpendSum, _spendings(sessions))
    _write(ClientEvent, _events(sessions))
    _write(OperatorAct, _acts(sessions[0]))
    _add_long_run(sessions[0])
    _add_owners(sessions)


def _write(model: type[models.Model], rows: Iterable[models.Model]) -> None:
    left = iter(rows)
    while batch := list(itertools.islice(left, BATCH)):
        model._default_manager.bulk_create(batch)


def _days(count: int = DAYS) -> Iterator[str]:
    today = timezone.localdate()
    return ((today - timedelta(days=back)).isoformat() for back in range(count))


def _sums(sessions: list[ChatSession]) -> Iterator[ActivitySum]:
    """Every chat has something in every hour: the most rows that there can be."""
    values = {
        **dict.fromkeys(("received", "addressed", "answered", "sent", "runs", "tool_calls"), 5),
        **dict.fromkeys(("failed", "unknown", "failed_runs", "within_2", "within_5", "later"), 1),
    }
    for back, day in enumerate(_days()):
        hours = range(WHOLE_DAY, 24 if back < DAYS_OF_HOURS else 0)
        for hour, session in itertools.product(hours, sessions):
            yield ActivitySum(day=day, hour=hour, session=session, **values)


def _uses(sessions: list[ChatSession]) -> Iterator[ToolUse]:
    for day, session in itertools.product(_days(), sessions):
        for tool in ("get_weather", "send_message"):
            yield ToolUse(day=day, session=session, tool=tool, calls=3)


def _spendings(sessions: list[ChatSession]) -> Iterator[SpendSum]:
    places = [f"onebot:{one.account}:{one.key}" for one in sessions]
    subjects = [
        (SpendKind.TOTAL, ""),
        *((SpendKind.CHAT, place) for place in places),
        *((SpendKind.PERSON, f"onebot:{one.account}/{one.peer_id}") for one in sessions),
    ]
    spent: dict[str, Any] = {"calls": 3, "input_tokens": 9_000, "output_tokens": 900}
    for day, (kind, subject) in itertools.product(_days(DAYS_OF_SPENDING), subjects):
        yield SpendSum(
            day=day, kind=kind, subject=subject, currency="CNY", cost_nano=9_000_000, **spent
        )


def _events(sessions: list[ChatSession]) -> Iterator[ClientEvent]:
    now = timezone.now()
    for number in range(EVENTS):
        yield ClientEvent(
            self_id=sessions[number % len(sessions)].account,
            post_type="notice",
            detail_type="group_increase",
            created_at=now,
            raw={"post_type": "notice", "notice_type": "group_increase", "user_id": number},
        )


def _acts(session: ChatSession) -> Iterator[OperatorAct]:
    """Many acts, a minute apart, up to now."""
    now = timezone.now()
    for back in range(2_000, 0, -1):
        at = now - timedelta(minutes=back)
        yield OperatorAct(
            session=session, kind=OperatorAct.Kind.SILENCE, author_name="bench", at=at
        )


def _add_long_run(session: ChatSession) -> None:
    """The newest run of the first chat: many steps, large requests, several calls in each."""
    now = timezone.now()
    newest = Message.objects.filter(session=session, direction="in", run__isnull=False)
    asked = newest.order_by("-pk").first()
    run = Run.objects.create(
        session=session,
        message=asked,
        state=Run.State.FINISHED,
        started_at=now,
        finished_at=now + timedelta(seconds=STEPS),
        model_calls=STEPS,
        final_text="done",
    )
    words = "这是一段很长的话，里面也有 English words. " * (REQUEST_CHARS // 31)
    for number in range(1, STEPS + 1):
        step = Step.objects.create(
            run=run,
            number=number,
            request=[{"role": "user" if number == 1 else "tool", "content": words}],
            response={"role": "assistant", "content": words[:2_000]},
            finish_reason="tool_calls",
            latency_ms=500,
            created_at=now + timedelta(seconds=number),
        )
        ToolCall.objects.bulk_create(
            ToolCall(
                run=run,
                step=step,
                position=position,
                call_id=f"c{number}-{position}",
                tool_name="get_weather",
                arguments={"city": "Beijing"},
                state=ToolCall.State.SUCCEEDED,
                result=words[:5_000],
                duration_ms=3,
                created_at=step.created_at,
            )
            for position in range(CALLS_A_STEP)
        )


def _add_owners(sessions: list[ChatSession]) -> None:
    """People who may see three chats."""
    group = Group.objects.get(name="chat_owner")
    for name, chosen in OWNERS.items():
        user, _is_new = User.objects.get_or_create(username=name, defaults={"is_staff": True})
        user.groups.add(group)
        for index in chosen:
            chat = sessions[index % len(sessions)]
            ChatGrant.objects.get_or_create(user=user, account=chat.account, chat=chat.key)
