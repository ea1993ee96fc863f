"""Proposals for notes, which wait for a person."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.memory.review import decide_proposal
from agent.models import NoteProposal
from tools.admin.filters import Rows
from tools.admin.record_pages import (
    Column,
    StateRecordAdmin,
    author_of,
    clamp_text,
    format_moment,
    record_link,
)
from tools.text.readable import json_block, text_block


@admin.register(NoteProposal)
class NoteProposalAdmin(StateRecordAdmin):
    addresses = (("decide", "<int:pk>/decide/"),)
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

    columns: ClassVar = {
        "recorded": Column(_("recorded at"), lambda row: format_moment(row.created_at)),
        # the notes as they were, each linked to what it is now
        "notes": Column(
            _("memory notes"),
            lambda row: (
                format_html_join(
                    "",
                    "{} {}",
                    (
                        (
                            record_link("agent_note", note["pk"], f"#{note['pk']}"),
                            clamp_text(note["text"]),
                        )
                        for note in row.before
                    ),
                )
                or "-"
            ),
        ),
        "result": Column(_("text"), lambda row: text_block(row.text)),
        "tags_json": Column(_("tags"), lambda row: ", ".join(map(str, row.tags)) or "-"),
        "before_json": Column(_("before"), lambda row: json_block(row.before)),
    }

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Users who may change and delete notes may apply proposals."""
        return request.user.has_perms(("agent.change_note", "agent.delete_note"))

    @admin.action(description=_("Do what is proposed"), permissions=["decide"])
    def accept(self, request: HttpRequest, queryset: Rows) -> None:
        self._decided(request, queryset, accept=True)

    @admin.action(description=_("Leave the notes as they are"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: Rows) -> None:
        self._decided(request, queryset, accept=False)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Where the page's two buttons lead while the proposal waits."""
        is_waiting = obj.state == NoteProposal.ProposalState.WAITING
        if is_waiting and self.has_decide_permission(request):
            return {"decide_url": reverse("admin:agent_noteproposal_decide", args=(obj.pk,))}
        return {}

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
        by = author_of(request).get_username()
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
