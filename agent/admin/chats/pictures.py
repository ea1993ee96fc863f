"""Pictures that the bot sent, as its chats show them: small, and made from the file that the
record names."""

from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from agent.admin.chats.segments import MEDIA
from agent.admin.chats.thumbnails import thumbnail_of
from agent.domain.errors import MediaError
from agent.media.media_folder import open_media_file
from agent.models import Message
from agent.runtime import wiring
from tools.admin.record_pages import ModelAdmin

LOCAL = "file://"
#: Bytes of a file that a thumbnail is made of.
LARGEST = 20 * 2**20


def picture_address(message_pk: int, file: str, place: int) -> str:
    """Where the picture at ``place`` of a message that the bot sent is shown; "" for one that is
    not on this machine."""
    if not file.startswith(LOCAL):
        return ""
    return reverse("admin:agent_message_picture", args=(message_pk, place))


def render_picture(address: str, words: str) -> str:
    """A picture by :func:`picture_address`; "" for none."""
    if not address:
        return ""
    return format_html(
        '<span class="thumbnail"><img src="{}" alt="{}" loading="lazy" decoding="async"></span>',
        address,
        words,
    )


class MessagePictures(ModelAdmin):
    """The address of the pictures, for the pages of messages."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.picture_view)
        address = path("<int:pk>/picture/<int:place>/", view, name="agent_message_picture")
        return [address, *super().get_urls()]

    def picture_view(self, request: HttpRequest, pk: int, place: int) -> HttpResponse:
        """A thumbnail. Raises Http404 where there is no such picture any more, or it is out of
        reach."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        rows = self.get_queryset(request).filter(direction=Message.Direction.OUT)
        message = get_object_or_404(rows.only("segments"), pk=pk)
        try:
            with open_media_file(_file_of(message.segments, place)) as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise Http404
            kept = wiring.build_file_store().put(content)
        except (MediaError, OSError) as error:
            raise Http404 from error
        return thumbnail_of(kept.sha256)


def _file_of(segments: Any, place: int) -> Path:
    """Raises Http404 where the segment names no picture of this machine."""
    try:
        segment = segments[place]
        kind, file = segment["type"], segment["data"]["file"]
    except (IndexError, KeyError, TypeError) as error:
        raise Http404 from error
    if kind not in MEDIA or not isinstance(file, str) or not file.startswith(LOCAL):
        raise Http404
    return Path(file.removeprefix(LOCAL))
