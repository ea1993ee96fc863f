"""The address where a chat is taken away as a file."""

from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agent.access import find_access
from agent.admin.chats.export import FORMS, stream_chat
from agent.domain.operator_acts import ActKind
from agent.models import ChatSession
from agent.record.waiting.operator_acts import record_act
from tools.admin.record_pages import ModelAdmin, parse_row_number
from tools.local_time import find_zone

EXPORT = "agent.export_chatsession"
#: The forms of :data:`FORMS`, as buttons say them.
EXPORT_FORMS = (
    ("markdown", _("Markdown, to read")),
    ("csv", _("CSV, for a spreadsheet")),
    ("jsonl", _("JSONL, for programs")),
)


class SessionExport(ModelAdmin):
    """For the pages of chats: ``POST <chat>/export/<form>/``. Each is on record as an act."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export_view)
        address = "<path:object_id>/export/<slug:form>/"
        return [path(address, view, name="agent_chatsession_export"), *super().get_urls()]

    @method_decorator(require_POST)
    def export_view(self, request: HttpRequest, object_id: str, form: str) -> StreamingHttpResponse:
        wanted = FORMS.get(form)
        session = get_object_or_404(ChatSession, pk=parse_row_number(object_id))
        if wanted is None or not find_access(request.user).covers(session):
            raise Http404
        if not request.user.has_perms((EXPORT, "agent.view_message")):
            raise PermissionDenied
        record_act(ActKind.EXPORT, session.pk, cast("User", request.user), detail=form)
        name = f"{session.account}-{session.kind}-{session.peer_id}.{wanted.suffix}"
        return StreamingHttpResponse(
            stream_chat(session, wanted, find_zone()),
            content_type=wanted.content_type,
            headers={
                "Content-Disposition": f'attachment; filename="{name}"',
                "Cache-Control": "no-store",
            },
        )
