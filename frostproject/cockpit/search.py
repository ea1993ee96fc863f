"""One search for everything that an operator opens by name: for Ctrl+K, for fields that name a chat
or a person, and as a page of its own."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.states import SessionKind
from frostproject.cockpit.search_rows import (
    MOST,
    TABLES,
    Wanted,
    find_chats,
    find_named,
    find_people,
)
from frostproject.cockpit.search_words import IN_LABEL, MOST_TYPED, Hit, find_in_words, split_words

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
}
WORDED = ("page", "setting", "act")
#: Hits of one kind where all kinds are looked for; known values that one request may name, and
#: characters of one.
MOST_OF_A_KIND, MOST_KNOWN, KNOWN_CHARS = 5, 20, 200


def find(request: HttpRequest, site: AdminSite) -> list[Hit]:
    """What ``request`` asks for by ``q`` (words) or ``is`` (values, as ``kind:value``), of one
    ``kind`` or of all; with nothing, the pages. At most :data:`MOST` hits, found by four queries
    beside those of sign-in and permissions."""
    words = split_words(request.GET.get("q", ""))
    kind = request.GET.get("kind", "")
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
    return sorted(best, key=lambda hit: (hit.rank(words) > IN_LABEL, kinds.index(hit.kind)))


def _read_known(request: HttpRequest) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for given in request.GET.getlist("is")[:MOST_KNOWN]:
        kind, _colon, value = given[:KNOWN_CHARS].replace("\0", "").partition(":")
        if value and (kind in KINDS or kind in SessionKind.values):
            known.setdefault(kind, []).append(value)
    return known


def _find_kinds(wanted: Wanted, kinds: set[str]) -> Iterator[Hit]:
    """In the order of :data:`KINDS`; what fits best of those found by words first."""
    if kinds & set(WORDED):
        yield from _find_worded(wanted, kinds)
    if "chat" in kinds:
        yield from find_chats(wanted)
    if "person" in kinds:
        yield from find_people(wanted)
    if kinds & set(TABLES):
        yield from find_named(wanted, kinds)


def _find_worded(wanted: Wanted, kinds: set[str]) -> list[Hit]:
    hits = [
        hit
        for hit in find_in_words(wanted.request, wanted.site, wanted.words)
        if hit.kind in kinds
        and (wanted.words or hit.kind == "page" or hit.key in wanted.known.get(hit.kind, ()))
    ]
    return sorted(hits, key=lambda hit: hit.rank(wanted.words))


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


def search_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """The same hits as a page, which needs no script."""
    context: dict[str, Any] = {
        **site.each_context(request),
        "title": gettext("Search"),
        "term": request.GET.get("q", "")[:MOST_TYPED],
        "hits": [(KINDS[hit.kind], hit) for hit in find(request, site)],
    }
    return TemplateResponse(request, "admin/search.html", context)
