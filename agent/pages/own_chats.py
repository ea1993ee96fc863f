"""Pages of rows that belong to single chats: whoever may not see every chat meets the rows of his
own ones alone, and a row elsewhere as one that does not exist."""

from typing import Any, ClassVar, TypeAlias

from django.db.models import Exists, Max, Model, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest

from agent.access import NOTHING, ChatAccess, find_access
from agent.models import ChatSession, JoinRequest, Message, MessageMedia, ResultPicture, Run
from tools.admin.record_pages import WINDOW, ModelAdmin, Rows

#: Newest rows of the chats in reach that a list reads.
OWN_WINDOW = 10_000
#: Of each of many chats a list reads at least so many rows.
LEAST_ROWS = 50
#: Newest runs whose steps and calls a list reads.
RUN_WINDOW = 3_000

#: Rows of a list, and the id below which there may be more of them, 0 for nowhere; None where all
#: rows are listed.
Bounded: TypeAlias = tuple[Rows, int | None]


class OwnChatsAdmin(ModelAdmin):
    """A mixin, named before the other bases. Views of its own find rows by ``get_queryset``."""

    #: What leads from a row to its chat session.
    chat_prefix: ClassVar[str] = "session__"

    def own_rows(self, access: ChatAccess) -> Q:
        """Of the rows that ``access`` reaches; it does not reach everything."""
        return access.condition(self.chat_prefix)

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request)
        access = find_access(request.user)
        return rows if access.is_everything else rows.filter(self.own_rows(access))

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """The row, which knows what the reader of its page may reach."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.access = find_access(request.user)
        return row

    def bound_rows(self, request: HttpRequest, rows: Rows, below: int) -> Bounded:
        """Of ``rows``, those that a list reads, so that few rows among many are found by index."""
        access = find_access(request.user)
        if access.is_everything or not self.chat_prefix:
            return super().bound_rows(request, rows, below)  # type: ignore[misc, no-any-return]
        newest, floor = self.newest_rows(access, below)
        return rows.filter(pk__in=newest.values("pk")), floor

    def newest_rows(self, access: ChatAccess, below: int) -> Bounded:
        """The newest of all rows that ``access`` reaches, by the index of their chats."""
        floor = newest_floor(self.model, access, OWN_WINDOW, below)
        rows = self.model._default_manager.filter(self.own_rows(access)).order_by()
        return (rows.filter(pk__gte=floor) if floor else rows), floor


class OwnAccountsAdmin(OwnChatsAdmin):
    """The same for rows that name an account, and a chat, in columns of their own. Lists read the
    newest rows of all chats for them."""

    account_field: ClassVar[str] = "account"
    chat_field: ClassVar[str] = ""

    def own_rows(self, access: ChatAccess) -> Q:
        if self.chat_field:
            return access.named_chat_condition(self.account_field, self.chat_field)
        return access.account_condition(self.account_field)

    def newest_rows(self, access: ChatAccess, below: int) -> Bounded:
        rows = self.model._default_manager.order_by()
        last = below - 1 if below else rows.aggregate(last=Max("pk"))["last"] or 0
        floor = max(0, last - WINDOW + 1)
        return rows.filter(self.own_rows(access), pk__gte=floor, pk__lte=last), floor


def own_requests(access: ChatAccess) -> Q:
    """Of requests to be let in: those to whole accounts that ``access`` reaches, and of single
    groups those of people who want to join them."""
    found = access.account_condition("account")
    for account, key in sorted(access.chats):
        kind, _colon, peer_id = key.partition(":")
        if kind == ChatSession.Kind.GROUP:
            found |= Q(account=account, group_id=peer_id, kind=JoinRequest.Kind.JOIN)
    return found


class OwnMediaAdmin(OwnChatsAdmin):
    """The same for files that messages and results of tools hold, and texts about them."""

    #: What names the row in the media of a message.
    media_field: ClassVar[str] = "kept"

    def own_rows(self, access: ChatAccess) -> Q:
        sessions = access.sessions().values("pk")
        uses = MessageMedia.objects.filter(**{self.media_field: OuterRef("pk")})
        found = Q(Exists(uses.filter(message__session__in=sessions)))
        if self.media_field != "kept":
            return found
        results = ResultPicture.objects.filter(kept=OuterRef("pk"), session__in=sessions)
        return found | Q(Exists(results))

    def newest_rows(self, access: ChatAccess, below: int) -> Bounded:
        """Those of the newest messages."""
        floor = newest_floor(Message, access, OWN_WINDOW)
        messages = Message.objects.filter(access.condition("session__"), pk__gte=floor).order_by()
        media = MessageMedia.objects.filter(message__in=messages.values("pk")).order_by()
        found = Q(pk__in=media.exclude(**{self.media_field: None}).values(self.media_field))
        if self.media_field == "kept":
            results = ResultPicture.objects.filter(session__in=access.sessions().values("pk"))
            found |= Q(pk__in=results.order_by().values("kept"))
        return self.model._default_manager.filter(found).order_by(), 0


def own_uses(row: Any) -> "QuerySet[MessageMedia]":
    """The uses of a file or a text in messages that the reader of its page may reach, the newest
    first."""
    access: ChatAccess = getattr(row, "access", NOTHING)
    uses: QuerySet[MessageMedia] = row.uses.filter(access.condition("message__session__"))
    return uses.order_by("-pk")


class OwnRunsAdmin(OwnChatsAdmin):
    """The same for runs, of which some have no chat but ask a message of one again."""

    def own_rows(self, access: ChatAccess) -> Q:
        return access.run_condition()

    def newest_rows(self, access: ChatAccess, below: int) -> Bounded:
        return newest_runs(access, OWN_WINDOW, below)


class OwnPartsAdmin(OwnChatsAdmin):
    """The same for rows that belong to runs."""

    chat_prefix: ClassVar[str] = "run__"

    def own_rows(self, access: ChatAccess) -> Q:
        return access.run_condition(self.chat_prefix)

    def newest_rows(self, access: ChatAccess, below: int) -> Bounded:
        """Those of the newest runs; where a list continues, of the runs before its end."""
        rows = self.model._default_manager.order_by("pk")
        end = rows.filter(pk__gte=below).values_list("run", flat=True).first() if below else None
        runs, floor = newest_runs(access, RUN_WINDOW, end + 1 if end else 0)
        found = rows.filter(run__in=runs.values("pk"))
        first = found.values_list("pk", flat=True).first() if floor else None
        return found.order_by(), first or 0


def newest_runs(access: ChatAccess, window: int, below: int) -> tuple[Rows, int]:
    """Runs in the chats that ``access`` reaches, the newest about ``window`` ones below a key, with
    the lowest key of them; and all that ask again, which are few."""
    floor = newest_floor(Run, access, window, below)
    runs = Run.objects.filter(access.condition("session__"), pk__gte=floor).order_by()
    again = Run.objects.filter(access.condition("trial_of__session__")).order_by()
    either = Q(pk__in=runs.values("pk")) | Q(pk__in=again.values("pk"))
    return Run.objects.filter(either).order_by(), floor


def newest_floor(model: type[Model], access: ChatAccess, window: int, below: int = 0) -> int:
    """The id from which on all rows of the chats that ``access`` reaches are about ``window`` ones
    at most; 0 where there are no more. ``model`` has a ``session``. Costs ``window`` entries of its
    index."""
    sessions = access.sessions()
    each = max(LEAST_ROWS, window // max(1, sessions.count()))
    rows = model._default_manager.filter(session=OuterRef("pk")).order_by("-pk").values("pk")
    if below:
        rows = rows.filter(pk__lt=below)
    beyond = sessions.annotate(beyond=Subquery(rows[each : each + 1]))
    return int(beyond.aggregate(last=Max("beyond"))["last"] or -1) + 1
