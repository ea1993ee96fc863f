"""Pictures of messages as pages show them: small, re-encoded from our own copies, never a sender's
file."""

from collections.abc import Sequence
from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from agent.admin.chats.voices import HEADERS, PLAYED, render_voice
from agent.domain.file_types import HEAD, sniff_mime_type
from agent.domain.media_refs import MediaUnavailable
from agent.media.image_reader import build_model_image_job
from agent.media.image_worker import process_image_now
from agent.models import Description, KeptFile, MessageMedia
from agent.runtime import wiring

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


def thumbnail_response(request: HttpRequest, kept: KeptFile) -> HttpResponse:
    """The thumbnail of a copy. Raises Http404 where there can be none."""
    return thumbnail_of(kept.sha256)


def thumbnail_of(sha256: str) -> HttpResponse:
    """The thumbnail of what is kept under that hash, made when it is asked for first. Raises
    Http404 where there can be none."""
    files = wiring.build_file_store()
    path = files.thumbnail_path(sha256)
    try:
        if not path.is_file():
            job = build_model_image_job(files.shown_source(sha256), path)
            process_image_now(replace(job, side=SIDE, size=BYTES, always=True))
        content = path.read_bytes()
    except (OSError, MediaUnavailable) as error:
        raise Http404(_("There is no thumbnail of this copy.")) from error
    mime = sniff_mime_type(content[:HEAD])
    if mime not in TYPES:
        raise Http404(_("There is no thumbnail of this copy."))
    return HttpResponse(content, content_type=mime, headers=HEADERS)


def render_thumbnail(kept: KeptFile | None, words: str = "", name: str = "") -> str:
    """A copy as a small picture that leads to its page, or as a player of its sound; its
    ``name`` or type in words where it is neither."""
    if kept is None:
        return "-"
    if kept.mime in PLAYED:
        return render_voice(kept)
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
