"""What is erased of a person, kind by kind. What other people said stays.

What a model was sent or answered and what tools were given are copies: they are erased wherever
the person's id stands in them. The messages of others in them are on record as messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop

from agent.domain.budgets import SpendKind
from agent.memory.notes_store import erase_person as erase_notes_of
from agent.models import (
    Approval,
    BudgetNotice,
    BudgetStop,
    ChatEvent,
    ChatSession,
    Description,
    Digest,
    JoinRequest,
    KeptFile,
    Message,
    MessageMedia,
    Reminder,
    ResultPicture,
    Run,
    SpendSum,
    Step,
    Tally,
    ToolCall,
    UndoStep,
)
from agent.privacy.person import Person, mentions_person
from agent.record.waiting.expiry import OPEN
from agent.record.waiting.stops import stop_answer
from tools.live_rows import ConfigVersion, LiveKind
from tools.models.change import delete_changes

#: Rows that one transaction looks at.
BATCH = 200
#: Tools whose calls keep what they changed, to take it back.
KEEPING = ("change_reminder", "cancel_reminder")
#: What stands where something was erased.
ERASED = gettext_noop("erased")


@dataclass(frozen=True, slots=True)
class ErasureBatch:
    """What one batch erased, by kind. ``after`` is the key to go on behind, None at the end.
    ``files`` are hashes of copies of media that no message holds any more."""

    counts: dict[str, int]
    after: int | None = None
    files: list[str] = field(default_factory=list)


#: Erases the next batch of one kind behind a key. It is given the chats that hold something of the
#: person.
EraseBatch = Callable[[Person, Sequence[int], int], ErasureBatch]


def erase_reminders(person: Person) -> int:
    """Delete what the person had set, and what was to be said in private to the person; how many.
    What is on its way is not said."""
    own = Q(set_by=person.person_id, session__platform=person.platform)
    rows = Reminder.objects.filter(own | _private(person, "session__"))
    for fired in rows.filter(fired__isnull=False).values_list("fired", flat=True):
        stop_answer(fired, Message.Reason.STOPPED)
    pks = list(rows.values_list("pk", flat=True))
    going = Reminder.objects.filter(pk__in=pks)
    delete_changes(going)
    going.delete()
    return len(pks)


def erase_join_requests(person: Person) -> int:
    """Delete what the person asked to be let in by, and the name from what others asked, also of
    who decided over it; how many."""
    if person.platform != "onebot":
        return 0
    for name in ("inviter_id", "decided_by"):
        JoinRequest.objects.filter(**{name: person.person_id}).update(**{name: ""})
    count, _ = JoinRequest.objects.filter(user_id=person.person_id).delete()
    return count


def erase_requests(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Empty the steps, of whoever's run, that held words of the person."""
    pks, more = _next(Step.objects.filter(_of_runs_in(chats)), after)
    held = mentions_person(person, "request", "sent", "response", "response_rest")
    found = Step.objects.filter(held | _private(person, "run__session__"), pk__in=pks)
    going = list(found.exclude(run__state=Run.State.RUNNING).values_list("pk", flat=True))
    Step.objects.filter(pk__in=going).update(
        request=[],
        sent=None,
        response=None,
        response_rest=None,
        attempts=None,
        error="",
        finish_reason=ERASED,
    )
    return ErasureBatch({"requests": len(going)}, more)


def erase_calls(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Empty the arguments and results of tool calls that held something of the person."""
    pks, more = _next(ToolCall.objects.filter(_of_runs_in(chats)), after)
    texts = ("arguments", "structured_content", "state_change", "result", "full_result")
    held = mentions_person(person, *texts)
    asked = Q(requested_by=person.person_id) | _private(person, "run__session__")
    found = ToolCall.objects.filter(held | asked, pk__in=pks)
    going = list(found.exclude(run__state=Run.State.RUNNING).values_list("pk", flat=True))
    ToolCall.objects.filter(pk__in=going).update(
        arguments={},
        structured_content=None,
        state_change=None,
        result=ERASED,
        full_result="",
        error="",
        progress="",
    )
    Approval.objects.filter(call__in=going).update(arguments={}, changed_arguments=None)
    return ErasureBatch({"tool_calls": len(going)}, more)


def erase_quotes(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Forget what the messages of others quoted or forwarded of the person, and the person's name
    where they mention the person; and that the person stood in an event that another one caused."""
    others = Message.objects.filter(session__in=chats).exclude(sender_id=person.person_id)
    pks, more = _next(others, after)
    rows = Message.objects.filter(pk__in=pks)
    quoting = rows.filter(mentions_person(person, "context_text"))
    count = quoting.update(context_text="")
    naming = list(rows.filter(mentions_person(person, "header")).only("header"))
    for row in naming:
        row.header = _without(row.header or {}, person)
    Message.objects.bulk_update(naming, ["header"])
    events = rows.filter(mentions_person(person, "raw"), reason=Message.Reason.EVENT)
    events.exclude(state__in=OPEN).update(raw=None)
    return ErasureBatch({"quotes": count, "names": len(naming)}, more)


def erase_summaries(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Empty the summaries of chats in which the person said something."""
    count = Digest.objects.filter(session__in=chats).exclude(text="").update(text="")
    return ErasureBatch({"summaries": count})


def erase_messages(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Delete the person's messages with their media and descriptions, the runs for them and what
    these said, and all of the private chats with the person. What is not settled stays."""
    own = Q(sender_id=person.person_id) | _private(person, "session__")
    pks, more = _next(Message.objects.filter(own, session__in=chats), after)
    settled = Message.objects.filter(pk__in=pks).exclude(state__in=OPEN)
    runs = list(
        Run.objects.filter(message__in=settled)
        .exclude(state=Run.State.RUNNING)
        .values_list("pk", flat=True)
    )
    answers = Message.objects.filter(run__in=runs, direction=Message.Direction.OUT)
    going = set(settled.values_list("pk", flat=True)) | set(
        answers.exclude(state__in=OPEN).values_list("pk", flat=True)
    )
    counts, files = _erase_media(going, runs)
    Message.objects.filter(pk__in=going).only("pk").delete()
    Run.objects.filter(pk__in=runs).only("pk").delete()
    return ErasureBatch({"messages": len(going), "runs": len(runs), **counts}, more, files)


def erase_lone_runs(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Delete the runs in the private chats with the person that no message asked for."""
    pks, more = _next(Run.objects.filter(_private(person, "session__"), message=None), after)
    runs = Run.objects.filter(pk__in=pks).exclude(state=Run.State.RUNNING)
    going = list(runs.values_list("pk", flat=True))
    counts, files = _erase_media(set(), going)
    Run.objects.filter(pk__in=going).only("pk").delete()
    return ErasureBatch({"runs": len(going), **counts}, more, files)


def erase_events(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Delete what happened in chats that names the person."""
    names = (Q(**{name: person.person_id}) for name in ("user_id", "target_id", "operator_id"))
    naming = Q(reduce(or_, names), session__platform=person.platform)
    pks, more = _next(ChatEvent.objects.filter(naming), after)
    ChatEvent.objects.filter(pk__in=pks).delete()
    return ErasureBatch({"events": len(pks)}, more)


def erase_remains(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """Delete the person's notes, sums and counts, and private chats that hold nothing any more,
    with what histories keep of these."""
    notes = erase_notes_of(person.platform, person.person_id)
    kept = ToolCall.objects.filter(mentions_person(person, "structured_content"))
    kept = kept.filter(tool_name__in=KEEPING, run__session__platform=person.platform)
    kept.update(structured_content=None)
    ends = Q(subject__endswith=f"/{person.person_id}")
    in_private = Q(subject__endswith=f":private:{person.person_id}")
    own = Q(ends, kind=SpendKind.PERSON) | Q(in_private, kind=SpendKind.CHAT)
    sums, _ = SpendSum.objects.filter(own).delete()
    BudgetNotice.objects.filter(ends | in_private).delete()
    BudgetStop.objects.filter(ends | in_private).delete()
    Tally.objects.filter(ends).delete()
    undone = UndoStep.objects.filter(run__session__platform=person.platform)
    undone.filter(author=person.person_id).update(author="")
    private = ChatSession.objects.filter(_private(person, ""), messages=None, runs=None)
    gone = list(private.values_list("pk", flat=True))
    going = ChatSession.objects.filter(pk__in=gone)
    delete_changes(going)
    going.delete()
    ConfigVersion.bump(LiveKind.PAST_SUMS)
    return ErasureBatch({"notes": notes, "sums": sums, "chats": len(gone)})


#: In this order: what is found by the person's messages goes before they do.
PHASES: tuple[EraseBatch, ...] = (
    erase_requests,
    erase_calls,
    erase_quotes,
    erase_summaries,
    erase_messages,
    erase_lone_runs,
    erase_events,
    erase_remains,
)


def _next(rows: "QuerySet[Any]", after: int) -> tuple[list[int], int | None]:
    """The keys of the next batch, and the one to go on behind."""
    pks = list(rows.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:BATCH])
    return pks, pks[-1] if len(pks) == BATCH else None


def _of_runs_in(chats: Sequence[int]) -> Q:
    """Of what belongs to runs in ``chats``; those that only asked again have no chat
    themselves, nor have those of agents inside them."""
    again = Q(run__trial_of__session__in=chats)
    return Q(run__session__in=chats) | again | Q(run__parent__run__trial_of__session__in=chats)


def _private(person: Person, prefix: str) -> Q:
    """Of the private chats with the person; ``prefix`` leads to the chat."""
    columns = {"platform": person.platform, "kind": "private", "peer_id": person.person_id}
    return Q(**{prefix + name: value for name, value in columns.items()})


def _without(header: dict[str, Any], person: Person) -> dict[str, Any]:
    """What was noted of a message of others, without the person whom it mentions."""
    mentions = header.get("mentions") or []
    others = [one for one in mentions if one.get("user_id") != person.person_id]
    return {**header, "mentions": others}


def _erase_media(messages: set[int], runs: list[int]) -> tuple[dict[str, int], list[str]]:
    """Delete what belongs to the media of ``messages`` and of the results of ``runs``, and is not
    of others as well: descriptions, and rows of copies, whose hashes are handed out."""
    uses = MessageMedia.objects.filter(message__in=messages)
    pictures = ResultPicture.objects.filter(call__run__in=runs)
    kept = {*uses.values_list("kept", flat=True), *pictures.values_list("kept", flat=True)} - {None}
    read = set(uses.values_list("description", flat=True)) - {None}
    count, _ = uses.delete()
    pictures.delete()
    described, _ = Description.objects.filter(pk__in=read, uses=None).delete()
    unused = KeptFile.objects.filter(pk__in=kept, uses=None, results=None)
    files = list(unused.values_list("sha256", flat=True))
    unused.filter(sha256__in=files).delete()
    return {"media": count, "descriptions": described}, files
