"""Proposals for notes, which wait for a person, and the digests of conversations."""

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.memory.review_store import decide_proposal
from agent.models import Digest, NoteProposal
from agent.pages.own_chats import OwnChatsAdmin
from tools.admin.filters import RecordedSince, Rows
from tools.admin.record_pages import (
    RecordAdmin,
    StateRecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.text.readable import json_block, text_block


@admin.register(NoteProposal)
class NoteProposalAdmin(StateRecordAdmin):
    actions = ("accept", "reject")  # type: ignore[assignment]
    list_display = ("recorded", "outcome", "kind", "notes", "result", "decided_by")
    list_filter = ("state", "kind")
    list_defer = ()
    indexed_lookups = frozenset({"state__exact"})
    text_fields = ("text", "decided_by")
    change_form_template = "admin/agent/noteproposal/change_form.html"
    fields = (
        "kind",
        "outcome",
        "notes",
        "result",
        "tags_json",
        "model",
        "created_at",
        "decided_by",
        "decided_at",
        "before_json",
    )

    @admin.display(description=_("recorded at"))
    def recorded(self, proposal: NoteProposal) -> str:
        return format_moment(proposal.created_at)

    @admin.display(description=_("memory notes"))
    def notes(self, proposal: NoteProposal) -> str:
        """The notes as they were, each linked to what it is now."""
        rows = (
            (record_link("agent_note", note["pk"], f"#{note['pk']}"), clamp_text(note["text"]))
            for note in proposal.before
        )
        return format_html_join("", "{} {}", rows) or "-"

    @admin.display(description=_("text"))
    def result(self, proposal: NoteProposal) -> str:
        return text_block(proposal.text)

    @admin.display(description=_("tags"))
    def tags_json(self, proposal: NoteProposal) -> str:
        return ", ".join(map(str, proposal.tags)) or "-"

    @admin.display(description=_("before"))
    def before_json(self, proposal: NoteProposal) -> str:
        return json_block(proposal.before)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Users who may change and delete notes may apply proposals."""
        return request.user.has_perms(("agent.change_note", "agent.delete_note"))

    @admin.action(description=_("Do what is proposed"), permissions=["decide"])
    def accept(self, request: HttpRequest, queryset: Rows) -> None:
        self._decided(request, queryset, accept=True)

    @admin.action(description=_("Leave the notes as they are"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: Rows) -> None:
        self._decided(request, queryset, accept=False)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.decide_view)
        return [
            path("<int:pk>/decide/", view, name="agent_noteproposal_decide"),
            *super().get_urls(),
        ]

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Where the page's two buttons lead while the proposal waits."""
        if obj.state != NoteProposal.ProposalState.WAITING or not self.has_decide_permission(
            request
        ):
            return {}
        return {"decide_url": reverse("admin:agent_noteproposal_decide", args=(obj.pk,))}

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Decide one proposal, and show it with what came of it."""
        if not self.has_decide_permission(request) or not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        decision = request.POST.get("decision")
        if decision not in ("accept", "reject"):
            raise BadRequest
        proposal = get_object_or_404(self.get_queryset(request), pk=pk)
        self._decided(
            request, self.model.objects.filter(pk=proposal.pk), accept=decision == "accept"
        )
        return redirect("admin:agent_noteproposal_change", proposal.pk)

    def _decided(self, request: HttpRequest, queryset: Rows, *, accept: bool) -> None:
        by = cast("User", request.user).get_username()
        states = [
            decide_proposal(pk, by=by, accept=accept)
            for pk in queryset.order_by("pk").values_list("pk", flat=True)
        ]
        State = NoteProposal.ProposalState  # noqa: N806 - a class
        if count := sum(state in (State.APPLIED, State.REJECTED) for state in states):
            words = ngettext(
                "%(count)d proposal was decided.", "%(count)d proposals were decided.", count
            ) % {"count": count}
            self.message_user(request, words, messages.SUCCESS)
        if State.STALE in states:
            words = gettext(
                "Some notes have changed since they were reviewed, and were left as they are."
            )
            self.message_user(request, words, messages.WARNING)
        if None in states:
            words = gettext("What was decided before, or is no more, was left as it is.")
            self.message_user(request, words, messages.WARNING)


@admin.register(Digest)
class DigestAdmin(OwnChatsAdmin, RecordAdmin):
    list_display = ("recorded", "chat", "kind", "excerpt", "message_count", "note_count", "model")
    list_filter = (RecordedSince, "kind")
    list_select_related = ("session",)
    list_excerpts = ("text",)
    indexed_lookups = frozenset({"kind__exact"})
    text_fields = ("text",)
    fields = (
        *("chat", "kind", "words", "first_run", "last_run", "message_count", "note_count"),
        *("model", "input_tokens", "output_tokens", "created_at"),
    )
    search_help_text: ClassVar = _("Words of a summary, or the number of a digest.")

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))

    @admin.display(description=_("recorded at"))
    def recorded(self, digest: Digest) -> str:
        return format_moment(digest.created_at)

    @admin.display(description=_("chat"))
    def chat(self, digest: Digest) -> str:
        return record_link("agent_chatsession", digest.session_id, digest.session)

    @admin.display(description=_("text"))
    def excerpt(self, digest: Digest) -> str:
        return clamp_text(getattr(digest, "text_excerpt", ""))

    @admin.display(description=_("text"))
    def words(self, digest: Digest) -> str:
        return text_block(digest.text)
