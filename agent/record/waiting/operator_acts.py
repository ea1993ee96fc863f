"""What operators did in chats, on record beside what it changed."""

from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from agent.domain.states import ActKind
from agent.models import Message, OperatorAct, Run


def record_act(
    kind: ActKind,
    session_pk: int | None,
    author: User | AnonymousUser | None,
    *,
    message: Message | None = None,
    run: Run | None = None,
    detail: str = "",
) -> OperatorAct:
    """Put an act on record. Call it in the transaction of what the act changes: either both are on
    record, or neither.

    ``author`` is None for the program itself, such as where a time is over. ``session_pk`` is None
    for an act that concerns no single chat.
    """
    user = author if isinstance(author, User) else None
    return OperatorAct.objects.create(
        kind=kind,
        session_id=session_pk,
        author=user,
        author_name=author_name(author),
        at=timezone.now(),
        message=message,
        run=run,
        detail=detail,
    )


def set_act_outcome(pk: int, detail: str) -> None:
    """What came of an act that was on record before it was done."""
    OperatorAct.objects.filter(pk=pk).update(detail=detail)


def author_name(author: User | AnonymousUser | None) -> str:
    """The name under which the record knows an operator; it stays when the account is deleted."""
    return author.get_username()[:150] if isinstance(author, User) else ""
