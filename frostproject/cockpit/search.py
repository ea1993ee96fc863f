"""One search for everything that an operator opens by name: for Ctrl+K, for fields that name a chat
or a person, and as a page of its own.

Chats, people, accounts, endpoints, personas and tools are found on record by name or number, within
reach of who asks. Pages of the navigation, acts and fields of forms are found by their words alone:
by what they are called in the reader's language and in the other ones.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Case, CharField, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import (
    get_language,
    gettext,
    gettext_lazy as _,
    gettext_noop,
    override,
)

from agent.access import find_access
from agent.domain.states import SessionKind
from agent.models import ChatSession, Message, ModelEndpoint, Persona
from frostproject.cockpit.tables import find_words, name_table
from onebot.models import Bot
from tools.admin.record_pages import WINDOW
from tools.admin.settings_page import SettingsAdmin
from tools.models import McpServer, Plugin, ToolConfig
from tools.text.readable import escape_direction_chars
from tools.text.storable import make_storable

#: What can be found, in the order in which it is shown, and what one of it is called.
KINDS = {
    "page": _("page"),
    "setting": _("setting"),
    "act": _("act"),
    "chat": _("chat"),
    "person": _("person"),
    "account": _("account"),
    "endpoint": _("endpoint"),
    "persona": _("persona"),
    "tool": _("tool"),
    "server": _("MCP server"),
    "plugin": _("plugin"),
}
#: Kinds as the choice of a form calls them.
LISTED = {"people": "person", "groups": "group"}
#: Hits of one kind where all kinds are looked for; known values that one request may name, and
#: characters of one.
MOST_OF_A_KIND, MOST_KNOWN, KNOWN_CHARS = 5, 20, 200
#: Hits of one search, and messages of people that fit which it reads.
MOST, MOST_READ = 20, 3_000
#: Characters of a query that count, words of it, and characters of a name that are shown.
MOST_TYPED, MOST_WORDS, SHOWN = 100, 8, 80
#: The worst rank of a hit that is called as was asked.
IN_LABEL = 2


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found. ``key`` tells it from all others of its ``kind``; ``values`` is what fields
    that name it hold, by their form; ``texts`` what it was found by beside its label."""

    kind: str
    key: str
    label: str
    url: str
    note: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()


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


def find(request: HttpRequest, site: AdminSite) -> list[Hit]:
    """What ``request`` asks for by ``q`` (words) or ``is`` (values, as ``kind:value``), of one
    ``kind`` or of all; with nothing, the pages. At most :data:`MOST` hits, found by four queries
    beside those of sign-in and permissions."""
    typed = make_storable(request.GET.get("q", "")[:MOST_TYPED]).replace("\ufffd", " ")
    words = tuple(typed.split()[:MOST_WORDS])
    kind = request.GET.get("kind", "")
    kind = LISTED.get(kind, kind)
    known = {} if words else _read_known(request)
    for_each_account = request.GET.get("takes") == "subject"
    chat_kind = kind if kind in SessionKind.values else ""
    if chat_kind:
        kind, known = "chat", {"chat": known[chat_kind]} if chat_kind in known else {}
    wanted = Wanted(request, site, words, known, for_each_account, chat_kind)
    if kind:
        return list(islice(_find_kinds(wanted, {kind}), MOST))
    if words:
        return _choose_best(_find_kinds(wanted, set(KINDS)), words)
    asked = {f"{kind}:{key}" for kind, keys in known.items() for key in keys}
    listed = _find_kinds(wanted, set(known) | {"page"})
    return sorted(listed, key=lambda hit: f"{hit.kind}:{hit.key}" not in asked)[:MOST]


def _choose_best(hits: Iterable[Hit], words: tuple[str, ...]) -> list[Hit]:
    """The first hits of every kind, as many as there is room for; what is not called so, but found
    by other words, last."""
    counts, placed = dict.fromkeys(KINDS, 0), list[tuple[int, Hit]]()
    for hit in hits:
        counts[hit.kind] += 1
        placed.append((counts[hit.kind], hit))
    chosen = sorted(placed, key=lambda one: one[0])[:MOST]
    kinds = list(KINDS)
    best = [hit for count, hit in chosen if count <= MOST_OF_A_KIND]
    return sorted(
        best, key=lambda hit: (rank_label(hit.label, words) > IN_LABEL, kinds.index(hit.kind))
    )


def _read_known(request: HttpRequest) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for given in request.GET.getlist("is")[:MOST_KNOWN]:
        kind, _colon, value = given[:KNOWN_CHARS].replace("\0", "").partition(":")
        kind = LISTED.get(kind, kind)
        if value and (kind in KINDS or kind in SessionKind.values):
            known.setdefault(kind, []).append(value)
    return known


def _find_kinds(wanted: Wanted, kinds: set[str]) -> Iterator[Hit]:
    """In the order of :data:`KINDS`; what fits best of those found by words first."""
    for own, finder in FINDERS:
        if kinds & own:
            yield from finder(wanted, kinds)


def results(request: HttpRequest, site: AdminSite) -> JsonResponse:
    """The hits as JSON, for scripts."""
    hits = [
        {
            "kind": hit.kind,
            "kind_name": str(KINDS[hit.kind]),
            "key": f"{hit.kind}:{hit.key}",
            "label": hit.label,
            "note": hit.note,
            "url": hit.url,
            "values": dict(hit.values),
        }
        for hit in find(request, site)
    ]
    return JsonResponse({"hits": hits})


def search_page(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """The same hits as a page, which needs no script."""
    return {
        "title": gettext("Search"),
        "term": request.GET.get("q", "")[:MOST_TYPED],
        "hits": [(KINDS[hit.kind], hit) for hit in find(request, site)],
    }


def rank_label(label: str, words: tuple[str, ...]) -> int:
    """How well ``words`` fit: 0 best, 3 where other texts than ``label`` hold them."""
    words, label = tuple(map(plain, words)), plain(label)
    whole = " ".join(words)
    if label == whole:
        return 0
    if label.startswith(whole):
        return 1
    return IN_LABEL if all(word in label for word in words) else IN_LABEL + 1


def plain(text: str) -> str:
    """``text`` as it is compared: without case, and without different widths of one sign."""
    return unicodedata.normalize("NFKC", text).casefold()


def show_name(text: str) -> str:
    """A name in one line that turns no direction; a long one is cut."""
    line = " ".join(text.split())
    return escape_direction_chars(line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…")


def _find_chats(wanted: Wanted, _kinds: set[str]) -> Iterator[Hit]:
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
        named = wanted.condition("title", starts="peer_id")
        rows = rows.filter(named | Q(kind=kind, peer_id__startswith=peer) if colon else named)
    order: list[Any] = ["-last_message_at", "-pk"]
    if wanted.words:
        whole = " ".join(wanted.words)
        order.insert(0, Case(When(Q(title__iexact=whole) | Q(peer_id=whole), then=0), default=1))
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


def _find_people(wanted: Wanted, _kinds: set[str]) -> Iterator[Hit]:
    """People by name or number among the newest messages, by the whole number among all: first
    those whose name fits best, then who spoke last. Two queries at most."""
    if not wanted.request.user.has_perm("agent.view_message"):
        return
    said = Message.objects.filter(
        find_access(wanted.request.user).condition("session__"), direction=Message.Direction.IN
    ).exclude(sender_id="")
    recent = said.filter(pk__gt=Subquery(Message.objects.order_by("-pk").values("pk")[:1]) - WINDOW)
    if wanted.known:
        recent = recent.filter(sender_id__in=wanted.ends("person", "/"))
    else:
        recent = recent.filter(wanted.condition("sender_name", starts="sender_id"))
    found = _gather(wanted, recent, MOST_READ)
    number = wanted.words[0] if len(wanted.words) == 1 else ""
    if number and len(number) <= 64 and not any(one[0] == number for one in found):
        found = [*_gather(wanted, said.filter(sender_id=number), 1), *found]
    if wanted.words:
        found.sort(key=lambda one: (one[0] != number, rank_label(one[1], wanted.words)))
    for person, name, platform, account in found[:MOST]:
        yield Hit(
            "person",
            person,
            show_name(name or person),
            reverse("admin:person", args=(person,)),
            show_name(f"{person} · {account}" if wanted.for_each_account else person),
            {"number": person, "subject": f"{platform}:{account}/{person}"},
        )


def _gather(wanted: Wanted, rows: "QuerySet[Message]", most: int) -> list[tuple[str, ...]]:
    """Those who said the newest ``most`` of ``rows``, each by number, the newest name that is not
    empty, platform and account."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    chats = ChatSession.objects.filter(pk=OuterRef("session_id"))  # a join would walk through all
    rows = rows.order_by("-pk").annotate(
        place_account=Subquery(chats.values("account")[:1]),
        place_platform=Subquery(chats.values("platform")[:1]),
    )
    columns = ("sender_id", "sender_name", "place_platform", "place_account")
    for one in rows.values_list(*columns)[:most]:
        key = (one[0], one[3]) if wanted.for_each_account else (one[0],)
        if key not in found or (one[1] and not found[key][1]):
            found[key] = one
    return list(found.values())


# What few rows hold is found by one query of several tables.


def _accounts(wanted: Wanted) -> "QuerySet[Any]":
    rows = Bot.objects.filter(find_access(wanted.request.user).account_condition("self_id"))
    return rows.annotate(called=F("self_id"), beside=F("nickname"))


def _plain(model: type[Any], beside: object) -> Callable[[Wanted], "QuerySet[Any]"]:
    return lambda wanted: model._default_manager.annotate(called=F("name"), beside=beside)


_NOTHING = Value("", output_field=CharField())
#: By kind: the model, its rows with what they are called, and the form of known values.
TABLES: dict[str, tuple[type[Any], Callable[[Wanted], "QuerySet[Any]"]]] = {
    "account": (Bot, _accounts),
    "endpoint": (ModelEndpoint, _plain(ModelEndpoint, F("model"))),
    "persona": (Persona, _plain(Persona, _NOTHING)),
    "tool": (ToolConfig, _plain(ToolConfig, _NOTHING)),
    "server": (McpServer, _plain(McpServer, F("url"))),
    "plugin": (
        Plugin,
        lambda _: Plugin.objects.annotate(called=F("folder"), beside=F("plugin_id")),
    ),
}


def _find_named(wanted: Wanted, kinds: Iterable[str]) -> Iterator[Hit]:
    """Rows of the :data:`TABLES` named by ``kinds``. One query."""
    parts = []
    for position, (kind, (model, list_rows)) in enumerate(TABLES.items()):
        if kind in kinds and wanted.may_open(model):
            rows = list_rows(wanted).filter(_fits(wanted, kind)).order_by()
            placed = rows.annotate(place=Value(position))
            parts.append(placed.values_list("place", "pk", "called", "beside"))
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


#: Fields by other words that people use for them, in both languages.
OTHER_WORDS = {
    "agent.Manners.silenced": "mute quiet silent shut up 静音 禁言 闭嘴 不说话",
    "agent.Manners.quiet_hours": "mute night do not disturb 静音 免打扰 夜间 勿扰",
    "agent.Manners.zone": "clock timezone 时间 时区",
    "agent.Reminder.due_at": "schedule cron alarm timer 定时 闹钟 日程 任务",
    "agent.EventRule.kind": "welcome poke keyword auto reply 欢迎 入群 戳一戳 关键词 自动回复",
    "agent.RequestRule.words": "join friend invite approve accept 加群 入群 好友 审批 自动通过",
    "agent.Manners.denied_people": "block ban blacklist 黑名单 拉黑 屏蔽",
    "agent.Manners.allowed_people": "allow whitelist 白名单",
    "agent.Manners.wake_names": "alias nickname trigger keyword 别名 昵称 唤醒 关键词",
    "agent.Manners.wake_prefixes": "trigger keyword 唤醒 关键词",
    "agent.Manners.wake_pattern": "regex trigger keyword 正则 唤醒 关键词",
    "agent.Manners.sends_per_minute": "rate limit 限速 频率",
    "agent.Budget.limit": "money cost price 花费 费用 钱",
    "agent.Persona.prompt": "system prompt character 提示词 系统提示 人设",
    "agent.PersonaChoice.user_id": "own persona for one person character 某个人 单独 专属人设",
    "agent.Installation.time_zone": "clock timezone 时间 时区",
    "onebot.Bot.owners": "owner admin master 主人 管理员",
}
#: Acts that are a button of a page: what they are called, the page, the permission, other words.
ACTS = (
    (
        gettext_noop("Silence everything"),
        "admin:agent_manners_changelist",
        "agent.change_manners",
        "mute quiet stop 静音 禁言 闭嘴",
    ),
    (gettext_noop("Change password"), "admin:password_change", "", "密码"),
)


def _find_worded(wanted: Wanted, kinds: Iterable[str]) -> list[Hit]:
    """Pages, acts and fields that the user may open and that hold all words, in the words of the
    reader's language."""
    shown = str(get_language() or settings.LANGUAGE_CODE)
    found = {(hit.kind, hit.key): hit for hit in _list_all(wanted)}
    texts = {at: [hit.label, hit.note, *hit.texts] for at, hit in found.items()}
    for code, _name in settings.LANGUAGES:
        if code != shown:
            with override(code):
                for hit in _list_all(wanted):
                    texts[hit.kind, hit.key] += [hit.label, hit.note]
    words = [*map(plain, wanted.words)]
    whole = {at: plain("\n".join(lines)) for at, lines in texts.items()}
    hits = [
        hit
        for at, hit in found.items()
        if hit.kind in kinds
        and all(word in whole[at] for word in words)
        and (words or hit.kind == "page" or hit.key in wanted.known.get(hit.kind, ()))
    ]
    return sorted(hits, key=lambda hit: rank_label(hit.label, wanted.words))


def _list_all(wanted: Wanted) -> Iterator[Hit]:
    request = wanted.request
    for group in wanted.site.get_app_list(request):
        for entry in (tab for one in group["models"] for tab in one.get("tabs", (one,))):
            if url := entry.get("admin_url"):
                yield Hit("page", url, str(capfirst(entry["name"])), url, str(group["name"]))
            if url := entry.get("add_url"):
                options = entry["model"]._meta
                adding = gettext("Add %(name)s") % {"name": options.verbose_name}
                yield Hit(
                    "act", url, str(find_words(options).add or adding), url, str(group["name"])
                )
    for words, name, permission, others in ACTS:
        if not permission or request.user.has_perm(permission):
            url = reverse(name)
            yield Hit("act", f"{url}#{words}", gettext(words), url, texts=(others,))
    for model, pages in wanted.site._registry.items():
        if isinstance(pages, SettingsAdmin):
            yield from _list_fields(request, model._meta.label, pages)


def _list_fields(request: HttpRequest, label: str, pages: "SettingsAdmin") -> Iterator[Hit]:
    """The fields of a form: of a new row, or of the one that there is. Where neither can be opened
    they lead to the list."""
    options, is_only = pages.opts, label == "agent.Installation"
    if not pages.has_add_permission(request) and not pages.has_change_permission(request):
        return
    page = "add" if pages.has_add_permission(request) else "changelist"
    url = reverse(f"admin:{options.app_label}_{options.model_name}_{page}")
    shown = set(pages.get_readonly_fields(request))
    for name in flatten_fieldsets(pages.get_fieldsets(request)):
        if name not in shown and (called := name_field(pages, str(name))):
            at = f"{url}#id_{name}" if page == "add" or is_only else url
            words = OTHER_WORDS.get(f"{label}.{name}", "")
            yield Hit("setting", f"{label}.{name}", called, at, name_table(options), texts=(words,))


def name_field(pages: "ModelAdmin[Any]", name: str) -> str:
    """What a field of a form is called; "" for what nobody can fill in, or has no words for."""
    field: Any = getattr(pages.form, "base_fields", {}).get(name)
    label = field.label if field is not None else None
    if field is None:
        with suppress(FieldDoesNotExist):
            column: Any = pages.model._meta.get_field(name)
            label = column.verbose_name if column.editable else None
    return str(capfirst(str(label))) if isinstance(label, Promise) else ""


#: How hits of which kinds are found, in the order of :data:`KINDS`.
FINDERS: tuple[tuple[set[str], Callable[[Wanted, set[str]], Iterable[Hit]]], ...] = (
    ({"page", "setting", "act"}, _find_worded),
    ({"chat"}, _find_chats),
    ({"person"}, _find_people),
    (set(TABLES), _find_named),
)
