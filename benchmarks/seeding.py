"""Fills the record with a past; runs in a child process with Django set up.

``history FIRST COUNT LENGTH``: chats FIRST to FIRST + COUNT, each with LENGTH
messages of history. ``record CHATS MESSAGES``: a large record as years of use
leave it, a fifth of it in the first chat. ``cockpit``: what the operator's pages show beside
such a record, see :mod:`benchmarks.cockpit_past`. ``offer COUNT``: nothing but that COUNT of
the benchmark's own tools are enabled, and the others not. ``outside COUNT``: the same of
its MCP servers, and the server that runs has followed.

Every row is settled, so that a server that starts on it has nothing to take up.
"""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.core.management import call_command
from django.db import connection, models, transaction
from django.utils import timezone

from agent.models import ChatSession, Message, Run, Step, ToolCall
from benchmarks import cockpit_past, outside_tools, reminder_times
from benchmarks.chats import CONNECTIONS, FIRST_ACCOUNT, Chat, chats
from onebot.models import Bot
from tools.models import ToolConfig

BATCH = 10_000
QUESTION = "[[n=seeded-000-0000]] hello, what is the weather like today?"
ANSWER = "[[r=seeded-000-0000:f:0000000000:0000000000]] here is the answer"
_State, _Reason, _Direction = Message.State, Message.Reason, Message.Direction


class Writer:
    """Makes rows with ids of its own and writes them a batch at a time, so that rows may point at
    each other."""

    def __init__(self, first_moment: datetime, step: timedelta) -> None:
        self._rows: dict[type[models.Model], list[models.Model]] = {}
        self._ids = {
            model: count(_last_id(model) + 1)
            for model in (ChatSession, Message, Run, Step, ToolCall)
        }
        self._moment, self._step = first_moment, step

    def reserve(self, model: type[models.Model]) -> int:
        """The id of a row that other rows point at before it is added."""
        return next(self._ids[model])

    def add(self, model: Any, pk: int = 0, /, **values: Any) -> int:
        """Returns the row's id; it is in the database after the next :meth:`flush`."""
        row = model(pk=pk or self.reserve(model), **values)
        self._rows.setdefault(model, []).append(row)
        return row.pk

    def message(self, session: int, direction: str, state: str, **values: Any) -> int:
        self._moment += self._step
        moments = {
            "happened_at": self._moment,
            "created_at": self._moment,
            "settled_at": self._moment,
        }
        text = values.pop("text", QUESTION)
        segments = [{"type": "text", "data": {"text": text}}]
        return self.add(
            Message,
            session_id=session,
            direction=direction,
            state=state,
            text=text,
            segments=segments,
            **moments,
            **values,
        )

    def moment(self) -> datetime:
        return self._moment

    def flush(self, least: int = 1) -> None:
        """Write what has come together, if that is ``least`` messages."""
        if len(self._rows.get(Message, ())) < least:
            return
        with transaction.atomic():
            for model, rows in self._rows.items():
                model._default_manager.bulk_create(rows)
        self._rows.clear()


def _last_id(model: Any) -> int:
    return model.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def sessions(writer: Writer, played: Sequence[Chat]) -> list[int]:
    return [
        writer.add(
            ChatSession,
            account=str(chat.account),
            kind=chat.kind,
            peer_id=str(chat.peer_id),
            title=f"chat {chat.peer_id}",
            last_message_at=writer.moment(),
        )
        for chat in played
    ]


def exchange(writer: Writer, session: int, chat: Chat) -> int:
    """One question that was answered and its answer, both part of the history; returns the run's
    id."""
    run = writer.reserve(Run)
    asked = writer.message(
        session,
        _Direction.IN,
        _State.ANSWERED,
        reason=_Reason.MENTION if chat.is_group else _Reason.PRIVATE,
        sender_id=str(chat.user_id),
        sender_name=f"user{chat.user_id}",
        message_id=f"s{run}",
        event_key=f"seeded:{run}",
        raw={
            "post_type": "message",
            "message_type": chat.kind,
            "user_id": chat.user_id,
            "raw_message": QUESTION,
        },
        run_id=run,
        in_history=True,
    )
    writer.message(
        session,
        _Direction.OUT,
        _State.DELIVERED,
        text=ANSWER,
        echo=f"seeded-{run}",
        run_id=run,
        in_history=True,
    )
    finished = {
        "started_at": writer.moment(),
        "finished_at": writer.moment(),
        "final_text": ANSWER,
        "model_calls": 1,
    }
    state = Run.State.FAILED if run % 200 == 0 else Run.State.FINISHED
    return writer.add(
        Run, run, session_id=session, message_id=asked, state=state, model="bench", **finished
    )


def step(writer: Writer, run: int) -> None:
    """The run's one step; every tenth called a tool."""
    number = writer.add(
        Step,
        run_id=run,
        number=1,
        request=[
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": QUESTION},
        ],
        response={"role": "assistant", "content": ANSWER},
        finish_reason="stop",
        latency_ms=500,
        created_at=writer.moment(),
    )
    if run % 10 == 0:
        writer.add(
            ToolCall,
            run_id=run,
            step_id=number,
            call_id=f"call_{run}",
            tool_name=("get_weather", "send_message")[run // 10 % 2],
            arguments={"city": "Beijing"},
            state=ToolCall.State.FAILED if run % 100 == 0 else ToolCall.State.SUCCEEDED,
            result="Beijing 的天气是晴朗，温度 25°C",
            duration_ms=3,
            created_at=writer.moment(),
        )


def overheard(writer: Writer, session: int, chat: Chat, number: int) -> None:
    """Two messages that were not answered, most because nobody asked the bot."""
    rare = [
        (_State.SILENT, _Reason.MENTION),
        (_State.FAILED, _Reason.WAKE_WORD),
        (_State.EXPIRED, _Reason.TOO_OLD),
    ]
    usual = (_State.RECORDED, _Reason.NOT_ADDRESSED)
    for state, reason in (usual, rare[number % 3] if number % 50 == 0 else usual):
        writer.message(
            session,
            _Direction.IN,
            state,
            reason=reason,
            sender_id=str(chat.user_id + 1),
            sender_name="somebody else",
            text="what people say to each other all day long",
        )


def seed_history(first: int, count_of_chats: int, length: int) -> None:
    writer = Writer(timezone.now() - timedelta(days=30), timedelta(seconds=1))
    played = chats(count_of_chats, first)
    for session, chat in zip(sessions(writer, played), played, strict=True):
        for _ in range(length // 2):
            exchange(writer, session, chat)
            writer.flush(BATCH)
    writer.flush()


def seed_record(count_of_chats: int, length: int) -> None:
    start = timedelta(days=300)
    writer = Writer(timezone.now() - start, start / (length + 1))
    for account in range(CONNECTIONS):
        Bot.objects.get_or_create(self_id=str(FIRST_ACCOUNT + account))
    played = chats(count_of_chats)
    ids = sessions(writer, played)
    for number, index in zip(range(length // 4), _chat_indexes(count_of_chats), strict=False):
        overheard(writer, ids[index], played[index], number)
        step(writer, exchange(writer, ids[index], played[index]))
        writer.flush(BATCH)
    writer.flush()


def _chat_indexes(count_of_chats: int) -> Iterator[int]:
    """Every fifth the first chat, the others in turn."""
    others = 0
    for number in count():
        if number % 5 == 0:
            yield 0
        else:
            others += 1
            yield 1 + others % (count_of_chats - 1)


def offer(count: int) -> None:
    own = ToolConfig.objects.filter(name__startswith="look_up_")
    own.update(
        enabled=models.Case(
            models.When(name__in=[f"look_up_{n}" for n in range(count)], then=True), default=False
        )
    )


def hurry() -> None:
    """A database that is thrown away if anything fails need not survive a power cut."""
    with connection.cursor() as cursor:
        for pragma in ("synchronous=OFF", "cache_size=-500000", "wal_autocheckpoint=100000"):
            cursor.execute(f"PRAGMA {pragma}")


def main() -> None:
    kind, *numbers = sys.argv[1:]
    call_command("migrate", verbosity=0)
    hurry()
    kinds = {
        "history": seed_history,
        "record": seed_record,
        "cockpit": cockpit_past.seed_cockpit,
        "offer": offer,
        "outside": outside_tools.switch,
        "reminders": reminder_times.seed_reminders,
    }
    kinds[kind](*map(int, numbers))
