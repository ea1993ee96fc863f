"""Pages of our own copies of media in messages: view and delete them."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from agent.admin.chats.thumbnails import render_thumbnail, thumbnail_response
from agent.admin.chats.voices import voice_response
from agent.models import KeptFile
from agent.pages.own_chats import OwnMediaAdmin, own_uses
from agent.runtime import wiring
from tools.admin.filters import RecordedSince
from tools.admin.record_pages import RecordAdmin, format_moment, parse_row_number, record_link

#: Messages that are named on the page of a copy.
USES = 20


class KeptSince(RecordedSince):
    """By when the copy was made."""


@admin.register(KeptFile)
class KeptFileAdmin(OwnMediaAdmin, RecordAdmin):
    actions = ("delete_selected",)  # type: ignore[assignment] # the base has none
    list_display = ("kept_at", "picture", "mime", "weight", "used")
    list_filter = (KeptSince,)
    search_help_text: ClassVar = _("The number of a copy, its content hash, or its type.")
    indexed_lookups = frozenset({"mime__exact"})
    fields = ("picture", "mime", "weight", "sha256", "created_at", "last_used_at", "messages")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("agent.delete_keptfile")

    def delete_model(self, request: HttpRequest, obj: KeptFile) -> None:
        """The row, then the copy."""
        obj.delete()
        wiring.build_file_store().remove(obj.sha256)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[KeptFile]) -> None:
        hashes = list(queryset.values_list("sha256", flat=True))
        queryset.delete()
        for sha256 in hashes:
            wiring.build_file_store().remove(sha256)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/thumbnail/", view(self.thumbnail_view), name="agent_keptfile_thumbnail"),
            path("<int:pk>/voice/", view(self.voice_view), name="agent_keptfile_voice"),
            *super().get_urls(),
        ]

    def thumbnail_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The small picture, for those who may read messages or copies."""
        return thumbnail_response(request, self._readable_copy(request, pk))

    def voice_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The sound, for the same people."""
        return voice_response(self._readable_copy(request, pk))

    def _readable_copy(self, request: HttpRequest, pk: int) -> KeptFile:
        if not (self.has_view_permission(request) or request.user.has_perm("agent.view_message")):
            raise PermissionDenied
        kept: KeptFile = get_object_or_404(self.get_queryset(request), pk=pk)
        return kept

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))
        yield Q(sha256=term.lower())
        yield Q(mime=term.lower())

    @admin.display(description=_("kept since"))
    def kept_at(self, kept: KeptFile) -> str:
        return format_moment(kept.created_at)

    @admin.display(description=_("last used"))
    def used(self, kept: KeptFile) -> str:
        return format_moment(kept.last_used_at)

    @admin.display(description=_("copy"))
    def picture(self, kept: KeptFile) -> str:
        return render_thumbnail(kept)

    @admin.display(description=_("size"))
    def weight(self, kept: KeptFile) -> str:
        return filesizeformat(kept.size)

    @admin.display(description=_("messages"))
    def messages(self, kept: KeptFile) -> str:
        pks = sorted(set(own_uses(kept).values_list("message_id", flat=True)[:USES]))
        links: list[Any] = [(record_link("agent_message", pk, f"#{pk}"),) for pk in pks]
        return format_html_join(" ", "{}", links) or "-"
