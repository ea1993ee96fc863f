"""What can be found on record by name or number, within reach of who asks: chats, people, accounts,
endpoints, personas and tools."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.contrib.admin import AdminSite
from django.db.models import Case, CharField, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import HttpRequest
from django.urls import reverse

from agent.access import find_access
from agent.models import ChatSession, Message, ModelEndpoint, Persona
from frostproject.cockpit.search_words import Hit, rank_label, show_name
from onebot.models import Bot
from tools.admin.record_pages import WINDOW
from tools.models import ToolConfig

#: Hits of one search, and messages of people that fit which it reads.
MOST, MOST_READ = 20, 3_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: ``words``, or else the values in ``known``, by kind. ``for_each_account``
    tells a person of two accounts apart."""

    request: HttpRequest
    site: AdminSite
    words: tuple[str, ...] = ()
    known: Mapping[str, list[str]] = field(default_factory=dict)
    for_each_account: bool = False
    chat_kind: str = ""
    """Of chats, those of this kind alone."""

    def may_open(self, model: type[Any]) -> bool:
        """Whether the user may open the pages of ``model``."""
        pages = self.site._registry.get(model)
        return pages is not None and pages.has_view_permission(self.request)

    def ends(self, kind: str, sign: str) -> set[str]:
        """The last parts of the known values, behind ``sign``."""
        return {value.rpartition(sign)[2][:64] for value in self.known.get(kind, ())}

    def condition(self, *fields: str, starts: str = "") -> Q:
        """That each word stands in one of ``fields``, or at the beginning of the field
        ``starts``."""
        found = Q()
        for word in self.words:
            each = [Q(**{f"{name}__icontains": word}) for name in fields]
            each += [Q(**{f"{starts}__startswith": word})] if starts else []
            found &= reduce(or_, each)
        return found


def find_chats(wanted: Wanted) -> Iterator[Hit]:
    """Chats by title, number or ``kind:number``: first what is called just so, then the one that
    spoke last. One query."""
    if not wanted.may_open(ChatSession):
        return
    rows = find_access(wanted.request.user).sessions()
    if wanted.chat_kind:
        rows = rows.filter(kind=wanted.chat_kind)
    if wanted.known:
        rows = rows.filter(peer_id__in=wanted.ends("chat", ":"))
    else:
        kind, colon, peer = "".join(wanted.words).partition(":")
        named = Q(kind=kind, peer_id__startswith=peer) if colon else Q(pk__in=())
        rows = rows.filter(wanted.condition("title", starts="peer_id") | named)
    order: list[Any] = ["-last_message_at", "-pk"]
    if wanted.words:
        whole = " ".join(wanted.words)
        is_so = Q(title__iexact=whole) | Q(peer_id=whole)
        order.insert(0, Case(When(is_so, then=0), default=1))
    columns = ("pk", "platform", "account", "kind", "peer_id", "title")
    for row in rows.order_by(*order).only(*columns)[:MOST]:
        place = f"{row.platform}:{row.account}:{row.key}"
        yield Hit(
            "chat",
            place,
            show_name(row.title or str(row)),
            reverse("admin:agent_chatsession_change", args=(row.pk,)),
            show_name(f"{row.get_kind_display()} {row.peer_id} · {row.account}"),
            {
                "number": row.peer_id,
                "chat": row.key,
                "subject": place,
                "account": row.account,
                "chat_kind": row.kind,
            },
        )


def find_people(wanted: Wanted) -> Iterator[Hit]:
    """People by name or number among the newest messages, by the whole number among all: first
    those whose name fits best, then who spoke last. Two queries at most."""
    if not wanted.request.user.has_perm("agent.view_message"):
        return
    access = find_access(wanted.request.user)
    said = Message.objects.filter(
        access.condition("session__"), direction=Message.Direction.IN
    ).exclude(sender_id="")
    newest = Message.objects.order_by("-pk").values("pk")[:1]
    recent = said.filter(pk__gt=Subquery(newest) - WINDOW)
    if wanted.known:
        recent = recent.filter(sender_id__in=wanted.ends("person", "/"))
    else:
        recent = recent.filter(wanted.condition("sender_name", starts="sender_id"))
    found = _gather(wanted, recent, MOST_READ)
    number = wanted.words[0] if len(wanted.words) == 1 else ""
    if number and len(number) <= 64 and not any(one.number == number for one in found):
        found = [*_gather(wanted, said.filter(sender_id=number), 1), *found]
    if wanted.words:
        found.sort(key=lambda one: (one.number != number, rank_label(one.name, wanted.words)))
    for one in found[:MOST]:
        yield one.hit(f" · {one.account}" if wanted.for_each_account else "")


class FoundPerson(NamedTuple):
    """Somebody who said something, as the search shows them."""

    number: str
    name: str
    platform: str
    account: str

    def hit(self, beside: str) -> Hit:
        return Hit(
            "person",
            self.number,
            show_name(self.name or self.number),
            reverse("admin:person", args=(self.number,)),
            show_name(f"{self.number}{beside}"),
            {
                "number": self.number,
                "subject": f"{self.platform}:{self.account}/{self.number}",
            },
        )


def _gather(wanted: Wanted, rows: "QuerySet[Message]", most: int) -> list[FoundPerson]:
    """Those who said the newest ``most`` of ``rows``, each with the newest name that is not
    empty."""
    found: dict[tuple[str, ...], FoundPerson] = {}
    chats = ChatSession.objects.filter(pk=OuterRef("session_id"))  # a join would walk through all
    rows = rows.order_by("-pk").annotate(
        place_account=Subquery(chats.values("account")[:1]),
        place_platform=Subquery(chats.values("platform")[:1]),
    )
    columns = ("sender_id", "sender_name", "place_platform", "place_account")
    for one in map(FoundPerson._make, rows.values_list(*columns)[:most]):
        key = (one.number, one.account) if wanted.for_each_account else (one.number,)
        if key not in found or (one.name and not found[key].name):
            found[key] = one
    return list(found.values())


# What few rows hold is found by one query of several tables.


def _accounts(wanted: Wanted) -> "QuerySet[Any]":
    access = find_access(wanted.request.user)
    rows = Bot.objects.filter(access.account_condition("self_id"))
    return rows.annotate(called=F("self_id"), beside=F("nickname"))


def _plain(model: type[Any], beside: Any) -> Callable[[Wanted], "QuerySet[Any]"]:
    return lambda wanted: model._default_manager.annotate(called=F("name"), beside=beside)


_NOTHING = Value("", output_field=CharField())
#: By kind: the model, its rows with what they are called, and the form of known values.
TABLES: dict[str, tuple[type[Any], Callable[[Wanted], "QuerySet[Any]"]]] = {
    "account": (Bot, _accounts),
    "endpoint": (ModelEndpoint, _plain(ModelEndpoint, F("model"))),
    "persona": (Persona, _plain(Persona, _NOTHING)),
    "tool": (ToolConfig, _plain(ToolConfig, _NOTHING)),
}


def find_named(wanted: Wanted, kinds: Iterable[str]) -> Iterator[Hit]:
    """Rows of the :data:`TABLES` named by ``kinds``. One query."""
    parts = []
    for position, kind in enumerate(TABLES):
        model, list_rows = TABLES[kind]
        if kind not in kinds or not wanted.may_open(model):
            continue
        rows = list_rows(wanted).filter(_fits(wanted, kind)).order_by()
        number = Value(position)
        parts.append(rows.annotate(place=number).values_list("place", "pk", "called", "beside"))
    if not parts:
        return
    rows = parts[0].union(*parts[1:], all=True) if parts[1:] else parts[0]
    for position, pk, called, beside in rows.order_by("place", "called")[: MOST * 3]:
        yield _named_hit(list(TABLES)[position], pk, called, beside)


def _fits(wanted: Wanted, kind: str) -> Q:
    if not wanted.known:
        return wanted.condition("called", "beside")
    ends = wanted.ends(kind, ":") | set(wanted.known.get(kind, ()))
    pks = [int(end) for end in ends if end.isascii() and end.isdigit() and len(end) < 10]
    return Q(pk__in=pks) if kind == "endpoint" else Q(called__in=ends)


def _named_hit(kind: str, pk: int, called: str, beside: str) -> Hit:
    model, _rows = TABLES[kind]
    page = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    key, subject = (str(pk), str(pk)) if kind == "endpoint" else (called, called)
    label, note = (beside or called, called) if kind == "account" else (called, beside)
    if kind == "account":
        subject = f"onebot:{called}"
    values = {"number": key, "subject": subject}
    return Hit(kind, key, show_name(label), reverse(page, args=(pk,)), show_name(note), values)
