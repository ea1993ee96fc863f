"""Servers that are broken on purpose, to see that the judge sees it.

``python -m chaos.mutants NAME runserver …`` is ``manage.py runserver …`` with one thing changed in
its own process: nothing of this is in the program.
"""

import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import django
from django.core.management import execute_from_command_line


@dataclass(frozen=True, slots=True)
class Mutant:
    """``scenario`` is the one in which it is to be seen."""

    about: str
    scenario: str
    mutate: Callable[[], None]


def _patch(target: str, replacement: object) -> Any:
    """Put ``replacement`` in the place of ``module:name`` or ``module:class.name``; what was
    there."""
    module, _, path = target.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    usual = getattr(owner, name)
    setattr(owner, name, replacement)
    return usual


def _unfenced() -> None:
    _patch("agent.record.ground.commit:find_lost_claims", lambda claims: set())


def _unclaimed_hands() -> None:
    _patch("agent.record.waiting.hand_messages:_take", lambda row, process_id: True)


def _uncounted() -> None:
    _patch("agent.record.runs.replies:count_ended", lambda *counted: None)


def _not_deduped() -> None:
    _patch("agent.record.arrivals.arrivals:_find_seen", lambda *asked: {})
    _patch("agent.record.arrivals.arrivals:_event_key", lambda *asked: None)


def _out_of_order() -> None:
    def put(queues: Any, job: Any) -> None:
        queues._queues.setdefault(job.pending.message.chat, deque()).appendleft(job)
        queues.total += 1

    _patch("agent.chat.inbox:ChatQueues.put", put)


def _sent_before_recorded() -> None:
    from agent.domain.states import MessageState
    from agent.record.runs.replies import SendResult
    from agent.run.message_sender import new_echo

    async def send(sender: Any, segments: Any, text: str, **fields: Any) -> SendResult:
        echo = new_echo()
        delivery = await sender._outbox.deliver(
            sender.chat, segments, echo=echo, temp_group_id=sender._temp_group_id
        )
        planned = sender._planned(segments, text, state=MessageState.SENT, echo=echo, **fields)
        sender.has_spoken = True
        return SendResult(await sender.journal.add_reply(planned), delivery)

    _patch("agent.run.message_sender:MessageSender._send", send)


def _not_resumed() -> None:
    _patch("agent.chat.inbox:Inbox.resume", lambda inbox, account: None)


def _parts_twice() -> None:
    from agent.domain.states import MessageState

    async def resume(speaker: Any, run: Any, answer: Any) -> Any:
        again = [replace(one, state=MessageState.PENDING) for one in answer.messages]
        return await usual(speaker, run, replace(answer, messages=again))

    usual = _patch("agent.chat.speaking:Speaker.resume", resume)


def _parts_forgotten() -> None:
    async def pass_on(sender: Any, parts: Any, **options: Any) -> Any:
        sender.give_up([part.pk for part in parts[1:]])
        return await usual(sender, parts[:1], **options)

    usual = _patch("agent.run.message_sender:MessageSender._pass_on_parts", pass_on)


def _unmerged() -> None:
    def merge(group: Any) -> list[int]:
        return [held.message_pk for held in group]

    _patch("agent.chat.inbox:merge_messages", merge)


MUTANTS: dict[str, Mutant] = {
    "unfenced": Mutant("a process that was taken for dead still writes", "sleep", _unfenced),
    "unclaimed-hands": Mutant(
        "what operators write is nobody's when it is sent", "short-single", _unclaimed_hands
    ),
    "uncounted": Mutant("ends are not counted in the sums", "short-single", _uncounted),
    "not-deduped": Mutant("what was told before is taken in again", "kills", _not_deduped),
    "out-of-order": Mutant(
        "the newest message of a chat is answered first", "short-single", _out_of_order
    ),
    "sent-before-recorded": Mutant(
        "a message is written before it is on record", "kills", _sent_before_recorded
    ),
    "not-resumed": Mutant("what was left at an end is not taken up", "short-single", _not_resumed),
    "unmerged": Mutant("what was merged is not marked so in the commit", "short-single", _unmerged),
    "parts-twice": Mutant("a long answer that was broken off begins anew", "kills", _parts_twice),
    "parts-forgotten": Mutant(
        "of a long answer only the first part is said", "short-single", _parts_forgotten
    ),
}


def main() -> None:
    name, *words = sys.argv[1:]
    os.umask(0o077)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "frostproject.settings")
    django.setup()
    MUTANTS[name].mutate()
    execute_from_command_line(["manage.py", *words])


if __name__ == "__main__":
    main()
