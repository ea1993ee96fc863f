"""Proposals for notes, which wait for a person, and the digests of conversations."""

from collections.abc import Iterable
from typing import ClassVar, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.admin.own_chats import OwnChatsAdmin
from agent.memory.review_store import decide_proposal
from agent.models import Digest, NoteProposal
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

    def _decided(self, request: HttpRequest, queryset: Rows, *, accept: bool) -> None:
        by = cast("User", request.user).get_username()
        states = [
            decide_proposal(pk, by=by, accept=accept)
            for pk in queryset.order_by("pk").values_list("pk", flat=True)
        ]
        count = sum(
            state in (NoteProposal.ProposalState.APPLIED, NoteProposal.ProposalState.REJECTED)
            for state in states
        )
        words = ngettext(
            "%(count)d proposal was decided.", "%(count)d proposals were decided.", count
        ) % {"count": count}
        self.message_user(request, words, messages.SUCCESS)
        if NoteProposal.ProposalState.STALE in states:
            words = gettext(
                "Some notes have changed since they were reviewed, and were left as they are."
            )
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
