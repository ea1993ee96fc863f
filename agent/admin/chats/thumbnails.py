"""Pictures and voice of messages as pages show them, from our own copies and never from a sender's
address; pictures small and re-encoded."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from agent.admin.chats.segments import MEDIA
from agent.domain import errors, file_types, types
from agent.media import image_reader, media_folder
from agent.models import Description, KeptFile, Message, MessageMedia
from agent.runtime import wiring
from tools.admin.record_pages import Addresses, ModelAdmin

#: The copy of a hash never changes.
HEADERS = {
    "Cache-Control": "private, max-age=86400, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}
#: What browsers play. SILK and AMR, QQ's own, are played by none.
PLAYED = frozenset({"audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4"})
#: Bytes of a copy that is played.
LARGEST = 2**25
#: Longest side and bytes of a thumbnail.
SIDE, BYTES = 480, 2**17
#: Types that thumbnails are made in.
TYPES = frozenset({"image/jpeg", "image/png"})


class MediaPreviews:
    """The media of one message: each with its thumbnail, and what was read in them, each text
    once."""

    def __init__(self) -> None:
        self.media: list[tuple[str, MessageMedia]] = []
        self.descriptions: list[Description] = []

    def add(self, medium: MessageMedia) -> None:
        description = medium.description
        words = description.text if description else medium.name
        name = medium.name if medium.kind == "file" else ""
        self.media.append(
            (render_thumbnail(medium.kept, words, name) if medium.kept else "", medium)
        )
        if description is not None and description not in self.descriptions:
            self.descriptions.append(description)


def load_media_previews(message_pks: Sequence[int]) -> dict[int, MediaPreviews]:
    """The outcome of the media of each message, by its id. One query."""
    behind: dict[int, MediaPreviews] = {}
    media = MessageMedia.objects.filter(message_id__in=message_pks).select_related(
        "kept", "description"
    )
    for medium in media.order_by("message_id", "position"):
        behind.setdefault(medium.message_id, MediaPreviews()).add(medium)
    return behind


def thumbnail_of(sha256: str) -> HttpResponse:
    """The thumbnail of what is kept under that hash, made when it is asked for first. Raises
    Http404 where there can be none."""
    files = wiring.build_file_store()
    path = files.thumbnail_path(sha256)
    try:
        if not path.is_file():
            job = image_reader.build_model_image_job(files.shown_source(sha256), path)
            image_reader.process_image_now(replace(job, side=SIDE, size=BYTES, always=True))
        content = path.read_bytes()
    except (OSError, types.MediaUnavailable) as error:
        raise Http404(_("There is no thumbnail of this copy.")) from error
    mime = file_types.sniff_mime_type(content[: file_types.HEAD])
    if mime not in TYPES:
        raise Http404(_("There is no thumbnail of this copy."))
    return HttpResponse(content, content_type=mime, headers=HEADERS)


def render_thumbnail(kept: KeptFile | None, words: str = "", name: str = "") -> str:
    """A copy as a small picture that leads to its page, or as a player of its sound; its
    ``name`` or type in words where it is neither."""
    if kept is None:
        return "-"
    if kept.mime in PLAYED:  # nothing is loaded before it is started
        source = reverse("admin:agent_keptfile_voice", args=(kept.pk,))
        player = '<audio controls preload="none" src="{}" aria-label="{}"></audio>'
        return format_html(player, source, _("voice"))
    page = reverse("admin:agent_keptfile_change", args=(kept.pk,))
    if not kept.mime.startswith("image/"):
        return format_html('<a href="{}">{}</a>', page, name or kept.mime or _("unknown type"))
    source = reverse("admin:agent_keptfile_thumbnail", args=(kept.pk,))
    alt = words[:200] or _("picture")
    return format_html(
        '<a class="thumbnail" href="{}"><img src="{}" alt="{}" loading="lazy" '
        'decoding="async"></a>',
        page,
        source,
        alt,
    )


def voice_response(kept: KeptFile) -> HttpResponse:
    """The copy, if it is sound that browsers play by its content. Raises Http404 else."""
    stored = wiring.build_file_store().find(kept.sha256)
    if stored is None or stored.mime not in PLAYED or stored.size > LARGEST:
        raise Http404(_("This copy cannot be played."))
    try:
        content = stored.path.read_bytes()
    except OSError as error:
        raise Http404(_("This copy cannot be played.")) from error
    return HttpResponse(content, content_type=stored.mime, headers=HEADERS)


# Pictures that the bot sent, as its chats show them: small, and made from the file that the
# record names.

LOCAL = "file://"
#: Bytes of a file that a thumbnail is made of.
LARGEST_SENT = 20 * 2**20


def picture_address(message_pk: int, file: str, index: int) -> str:
    """Where the picture at ``index`` of a message that the bot sent is shown; "" for one that is
    not on this machine."""
    if not file.startswith(LOCAL):
        return ""
    return reverse("admin:agent_message_picture", args=(message_pk, index))


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

    addresses: ClassVar[Addresses] = (("picture", "<int:pk>/picture/<int:index>/"),)

    def picture_view(self, request: HttpRequest, pk: int, index: int) -> HttpResponse:
        """A thumbnail. Raises Http404 where there is no such picture any more, or it is out of
        reach."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        rows = self.get_queryset(request).filter(direction=Message.Direction.OUT)
        message = get_object_or_404(rows.only("segments"), pk=pk)
        try:
            with media_folder.open_media_file(_file_of(message.segments, index)) as file:
                content = file.read(LARGEST_SENT + 1)
            if len(content) > LARGEST_SENT:
                raise Http404
            kept = wiring.build_file_store().put(content)
        except (errors.MediaError, OSError) as error:
            raise Http404 from error
        return thumbnail_of(kept.sha256)


def _file_of(segments: Any, index: int) -> Path:
    """Raises Http404 where the segment names no picture of this machine."""
    try:
        segment = segments[index]
        kind, file = segment["type"], segment["data"]["file"]
    except (IndexError, KeyError, TypeError) as error:
        raise Http404 from error
    if kind not in MEDIA or not isinstance(file, str) or not file.startswith(LOCAL):
        raise Http404
    return Path(file.removeprefix(LOCAL))
