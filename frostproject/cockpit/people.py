"""People who write to the bot: found by name, what is on record of one, and erasing one."""

from collections.abc import Sequence
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agent.access import EVERY_CHAT, find_access
from agent.memory.notes_store import find_person_notes
from agent.models import ChatSession, ErasureReceipt
from agent.pages.people import find_people, list_chats, load_person
from agent.privacy.erasing import begin_erasure, continue_erasure
from agent.privacy.person import Person
from agent.privacy.phases import PHASES
from agent.privacy.receipts import describe_receipt
from agent.runtime.wiring import build_file_store
from onebot.gateway.person_events import erase_events

VIEW, ERASE = "agent.view_message", "agent.erase_person"
#: Characters that an id of a person has at most.
ID_CHARS = 64
#: What one request erases for, in seconds; the page asks again until nothing is left.
ERASE_SECONDS = 3.0
EVERY_PHASE = (*PHASES, erase_events)


@require_safe
def people_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Those who wrote last, or whose name or id is searched."""
    _require(request, VIEW)
    term = request.GET.get("q", "").replace("\0", "").strip()[:200]
    people = find_people(term, find_access(request.user))
    return _page(request, site, "people", {"title": _("People"), "people": people, "term": term})


@require_safe
def person_page(request: HttpRequest, site: AdminSite, person_id: str) -> HttpResponse:
    """One person: names, chats, notes; and the way to erase all of it."""
    _require(request, VIEW)
    access = find_access(request.user)
    person = load_person(person_id[:ID_CHARS], access)
    may_erase = request.user.has_perms((ERASE, EVERY_CHAT))
    if person is None and not may_erase:
        raise Http404
    counted = list(list_chats(person_id, access))
    chats = ChatSession.objects.in_bulk([row["session"] for row in counted])
    notes = find_person_notes("onebot", person_id) if access.is_everything else None
    return _page(
        request,
        site,
        "person",
        {
            "title": (person.names[0] if person and person.names else person_id),
            "person": person,
            "person_id": person_id,
            "chats": [(chats[row["session"]], row["count"]) for row in counted],
            "notes": notes.count() if notes is not None else None,
            "may_erase": may_erase,
            "receipts": list(ErasureReceipt.objects.filter(person_hash=Person(person_id).hash)[:20])
            if may_erase
            else (),
        },
    )


@require_POST
def erase_page(request: HttpRequest, site: AdminSite, person_id: str) -> HttpResponse:
    """Begin to erase a person, whose id was typed once more; or to go on where that was broken
    off."""
    _require(request, ERASE, EVERY_CHAT)
    if request.POST.get("typed", "").strip() != person_id:
        messages.error(request, _("Nothing was erased: the number you typed is another one."))
        return redirect("admin:person", person_id)
    receipt = begin_erasure(Person(person_id), cast("User", request.user))
    continue_erasure(receipt, EVERY_PHASE, _remove_files, ERASE_SECONDS)
    return redirect("admin:erasure", receipt.pk)


def receipt_page(request: HttpRequest, site: AdminSite, receipt: int) -> HttpResponse:
    """What went and what stayed. While that is not finished, each POST erases for some seconds
    more."""
    _require(request, ERASE, EVERY_CHAT)
    row = get_object_or_404(ErasureReceipt, pk=receipt)
    if request.method == "POST":
        continue_erasure(row, EVERY_PHASE, _remove_files, ERASE_SECONDS)
        return redirect("admin:erasure", receipt)
    title = _("Receipt of an erasure")
    shown = {"title": title, "receipt": row, **describe_receipt(row)}
    return _page(request, site, "receipt", shown)


def _require(request: HttpRequest, *permissions: str) -> None:
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def _remove_files(hashes: Sequence[str]) -> None:
    files = build_file_store()
    for sha256 in hashes:
        files.remove(sha256)


def _page(request: HttpRequest, site: AdminSite, name: str, more: dict[str, Any]) -> HttpResponse:
    context = {**site.each_context(request), "people_url": reverse("admin:people"), **more}
    return TemplateResponse(request, f"admin/people/{name}.html", context)
