"""What owners choose for one chat: who answers there, and what it may cost a day. On record with
who chose, and obeyed from the next message on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from django.contrib.auth.models import User

from agent.domain.budgets import TOKENS, BudgetAction, BudgetPeriod, SpendKind
from agent.domain.persona import PersonaKind
from agent.domain.types import ChatAddress
from agent.models import Budget, ModelEndpoint, Persona, PersonaChoice
from agent.record.settings.chat_manners import change_chat_manners, find_chat_manners
from tools.models.row_history import record_changes


class Named(NamedTuple):
    """A row that can be chosen by its name."""

    pk: int
    name: str


def list_personas() -> list[Named]:
    """Those that answer chats, but for the default one."""
    rows = Persona.objects.filter(enabled=True, kind=PersonaKind.PERSONA, is_default=False)
    return [Named(*row) for row in rows.order_by("name").values_list("pk", "name")]


def list_chat_endpoints() -> list[Named]:
    """The endpoints that answer chats, in their order."""
    rows = ModelEndpoint.objects.filter(enabled=True, can_chat=True).order_by("position", "pk")
    return [Named(*row) for row in rows.values_list("pk", "name")]


def find_chosen_persona(chat: ChatAddress) -> int | None:
    """The persona that is chosen for those of ``chat`` for whom none is; None: as elsewhere."""
    known = PersonaChoice.objects.filter(**_whole(chat)).order_by("pk")
    return known.values_list("persona_id", flat=True).first()


def find_chosen_endpoint(chat: ChatAddress) -> int | None:
    """The endpoint that is asked first in ``chat`` alone; None: as elsewhere."""
    row = find_chat_manners(chat)
    return row.endpoint_id if row else None


def choose_endpoint(chat: ChatAddress, endpoint_pk: int | None, author: User) -> None:
    """Have this endpoint asked first in ``chat``; None: as elsewhere."""
    if find_chosen_endpoint(chat) != endpoint_pk:
        change_chat_manners(chat, author, endpoint_id=endpoint_pk)


def _whole(chat: ChatAddress) -> dict[str, str]:
    fields = {"account": chat.account, "chat_kind": chat.kind, "peer_id": chat.peer_id}
    return {**fields, "user_id": ""}


def choose_persona(chat: ChatAddress, persona_pk: int | None, author: User | str) -> None:
    """Have this persona answer in ``chat`` those for whom none is chosen; None: as elsewhere."""
    known = PersonaChoice.objects.filter(**_whole(chat))
    chosen = set() if persona_pk is None else {persona_pk}
    with _recorded(author, chosen | set(known.values_list("persona_id", flat=True))):
        known.delete()
        if persona_pk is not None:
            PersonaChoice.objects.create(persona_id=persona_pk, **_whole(chat))


@contextmanager
def _recorded(author: User | str, persona_pks: set[int]) -> Iterator[None]:
    """What changes at the personas meanwhile; a list for each, for it is taken back at each."""
    with ExitStack() as stack:
        for row in Persona.objects.filter(pk__in=persona_pks).order_by("pk"):
            stack.enter_context(record_changes(author, row))
        yield


def set_chat_budget(chat: ChatAddress, tokens: int | None, author: str) -> None:
    """Let ``chat`` use so many tokens a day, from then on only for owners; None: as many as other
    budgets leave it."""
    row = find_chat_budget(chat, only_enabled=False)
    if row is None and tokens is not None:
        row = Budget.objects.create(
            name=free_name(f"{chat.key} ({chat.account})"),
            enabled=False,
            kind=SpendKind.CHAT,
            subject=chat.place,
            period=BudgetPeriod.DAY,
            limit=tokens,
            unit=TOKENS,
            at_limit=BudgetAction.OWNERS,
        )
    if row is not None:
        with record_changes(author, row):
            row.enabled = tokens is not None
            row.limit = row.limit if tokens is None else tokens
            row.save()


def find_chat_budget(chat: ChatAddress, *, only_enabled: bool = True) -> Budget | None:
    """The row that bounds the tokens of this chat alone in a day; the one that is enabled, where
    there are several."""
    rows = Budget.objects.filter(
        kind=SpendKind.CHAT, subject=chat.place, period=BudgetPeriod.DAY, unit=TOKENS
    )
    if only_enabled:
        rows = rows.filter(enabled=True)
    found: Budget | None = rows.order_by("-enabled", "pk").first()
    return found


def free_name(wanted: str) -> str:
    """``wanted``, or as near to it as no budget has it yet."""
    taken = set(Budget.objects.filter(name__startswith=wanted[:80]).values_list("name", flat=True))
    names = [wanted[:80], *(f"{wanted[:80]} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)
