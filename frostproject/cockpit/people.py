"""People who write to the bot: found by name, what is on record of one, and erasing one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from agent.access import EVERY_CHAT, ChatAccess, find_access
from agent.memory.notes_store import find_person_notes
from agent.models import ChatSession, ErasureReceipt, Message, PersonaChoice
from agent.pages.manners import choose_url
from agent.privacy import erasing, phases
from agent.privacy.person import Person
from agent.runtime.wiring import build_file_store
from onebot.gateway.person_events import erase_events
from tools.admin import record_pages
from tools.admin.record_pages import window_floor

# People, found by id or by a name under which they wrote, within reach of who asks.

#: People that one search lists, and newest messages of one person that are looked at.
MOST_PEOPLE, MOST_MESSAGES = 50, 5_000
#: Newest messages of all people that one search reads.
MOST_READ = 10_000
#: Names and chats of a person that are shown.
MOST_NAMES, MOST_CHATS = 10, 50


def find_people(term: str, access: ChatAccess) -> list[dict[str, Any]]:
    """Those whose id is ``term``, or in whose name it stands, among the newest messages; without a
    term those who wrote last. Each as :func:`load_person` tells. Counted here: grouped by people,
    SQLite would walk through the messages of all times."""
    rows = Message.objects.filter(
        access.condition("session__"),
        direction=Message.Direction.IN,
        pk__gte=window_floor(Message.objects.order_by("-pk")),
    ).exclude(sender_id="")
    if term:
        rows = rows.filter(Q(sender_id=term) | Q(sender_name__icontains=term))
    found: dict[str, dict[str, Any]] = {}
    columns = ("sender_id", "sender_name", "created_at")
    for number, name, at in rows.order_by("-pk").values_list(*columns)[:MOST_READ]:
        new = {"person_id": number, "names": [], "last_seen": at, "messages": 0}
        person = found.setdefault(number, new)
        person["messages"] += 1
        if name and not person["names"]:
            person["names"] = [name]
    listed = list(found.values())[:MOST_PEOPLE]
    is_listed = any(one["person_id"] == term for one in listed)
    old = load_person(term, access) if term and not is_listed else None  # who wrote long ago
    return [old, *listed] if old else listed


def load_person(person_id: str, access: ChatAccess) -> dict[str, Any] | None:
    """What the newest messages within ``access`` say of a person: the ``names``, the newest first,
    when he was ``last_seen``, and how many ``messages``, for which :data:`MOST_MESSAGES` may stand
    for more; None for nobody."""
    newest = _messages(person_id, access).values_list("sender_name", "created_at")
    rows = list(newest[:MOST_MESSAGES])
    if not rows:
        return None
    names = dict.fromkeys(name for name, _at in rows if name)
    shown = {"person_id": person_id, "names": list(names)[:MOST_NAMES]}
    return {**shown, "last_seen": rows[0][1], "messages": len(rows)}


def list_chats(person_id: str, access: ChatAccess) -> Iterable[Any]:
    """The chats in which the person wrote, the newest first: ``session`` and ``count``, among the
    newest messages."""
    newest = _messages(person_id, access).values_list("session_id", flat=True)
    counts = Counter(newest[:MOST_MESSAGES])  # which knows the order in which it met them
    return [{"session": pk, "count": count} for pk, count in counts.items()][:MOST_CHATS]


def _messages(person_id: str, access: ChatAccess) -> "QuerySet[Message]":
    return Message.objects.filter(
        access.condition("session__"), sender_id=person_id, direction=Message.Direction.IN
    ).order_by("-pk")


#: Characters that an id of a person has at most.
ID_CHARS = 64
#: What one request erases for, in seconds; the page asks again until nothing is left.
ERASE_SECONDS = 3.0
EVERY_PHASE = (*phases.PHASES, erase_events)


def people_page(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """Those who wrote last, or whose name or id is searched."""
    term = request.GET.get("q", "").replace("\0", "").strip()[:200]
    people = find_people(term, find_access(request.user))
    return {"title": _("People"), "people": people, "term": term}


def person_page(request: HttpRequest, site: AdminSite, person_id: str) -> dict[str, Any]:
    """One person: names, chats, notes; and the way to erase all of it."""
    access = find_access(request.user)
    person = load_person(person_id[:ID_CHARS], access)
    may_erase = request.user.has_perms(("agent.erase_person", EVERY_CHAT))
    if person is None and not may_erase:
        raise Http404
    counted = list(list_chats(person_id, access))
    chats = ChatSession.objects.in_bulk([row["session"] for row in counted])
    notes = find_person_notes("onebot", person_id) if access.is_everything else None
    places = PersonaChoice.objects.filter(user_id=person_id).select_related("persona")
    may_choose = request.user.has_perm("agent.change_persona")
    receipts = ErasureReceipt.objects.filter(person_hash=Person(person_id).hash)
    return {
        "title": (person["names"][0] if person and person["names"] else person_id),
        "person": person,
        "person_id": person_id,
        "chats": [(chats[row["session"]], row["count"]) for row in counted],
        "notes": notes.count() if notes is not None else None,
        "places": places if request.user.has_perm("agent.view_persona") else None,
        "persona_url": choose_url({"user_id": person_id}) if may_choose else "",
        "may_erase": may_erase,
        "receipts": list(receipts[:20]) if may_erase else (),
    }


def erase_page(request: HttpRequest, site: AdminSite, person_id: str) -> HttpResponse:
    """Begin to erase a person, whose id was typed once more; or to go on where that was broken
    off."""
    if request.POST.get("typed", "").strip() != person_id:
        messages.error(request, _("Nothing was erased: the number you typed is another one."))
        return redirect("admin:person", person_id)
    receipt = erasing.begin_erasure(Person(person_id), record_pages.author_of(request))
    erasing.continue_erasure(receipt, EVERY_PHASE, _remove_files, ERASE_SECONDS)
    return redirect("admin:erasure", receipt.pk)


def receipt_page(request: HttpRequest, site: AdminSite, receipt: int) -> Any:
    """What went and what stayed. While that is not finished, each POST erases for some seconds
    more."""
    row = get_object_or_404(ErasureReceipt, pk=receipt)
    if request.method == "POST":
        erasing.continue_erasure(row, EVERY_PHASE, _remove_files, ERASE_SECONDS)
        return redirect("admin:erasure", receipt)
    return {"title": _("Receipt of an erasure"), "receipt": row, **erasing.describe_receipt(row)}


def _remove_files(hashes: Sequence[str]) -> None:
    files = build_file_store()
    for sha256 in hashes:
        files.remove(sha256)
