"""Messages: what came in and went out, each with its decision or its outcome; and their pictures
and voice, from our own copies and never from a sender's address, pictures small and re-encoded."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.chats import act, session_list
from agent.admin.chats.segments import MEDIA
from agent.domain import errors, file_types, types
from agent.media import image_reader, media_folder
from agent.models import ChatSession, Description, KeptFile, Message, MessageMedia
from agent.pages import error_words, reasons
from agent.pages.own_chats import OwnChatsAdmin
from agent.record.settings.manners import ONEBOT
from agent.runtime import wiring
from tools.admin.record_pages import (
    Column,
    RecordAdmin,
    RecordedSince,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    record_links,
    render_state,
    require,
    with_less,
)
from tools.text.readable import json_block, text_block

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
        raise Http404(gettext("There is no thumbnail of this copy.")) from error
    mime = file_types.sniff_mime_type(content[: file_types.HEAD])
    if mime not in TYPES:
        raise Http404(gettext("There is no thumbnail of this copy."))
    return HttpResponse(content, content_type=mime, headers=HEADERS)


def render_thumbnail(kept: KeptFile | None, words: str = "", name: str = "") -> str:
    """A copy as a small picture that leads to its page, or as a player of its sound; its
    ``name`` or type in words where it is neither."""
    if kept is None:
        return "-"
    if kept.mime in PLAYED:  # nothing is loaded before it is started
        source = reverse("admin:agent_keptfile_voice", args=(kept.pk,))
        player = '<audio controls preload="none" src="{}" aria-label="{}"></audio>'
        return format_html(player, source, gettext("voice"))
    page = reverse("admin:agent_keptfile_change", args=(kept.pk,))
    if not kept.mime.startswith("image/"):
        return format_html(
            '<a href="{}">{}</a>', page, name or kept.mime or gettext("unknown type")
        )
    source = reverse("admin:agent_keptfile_thumbnail", args=(kept.pk,))
    return format_html(
        '<a class="thumbnail" href="{}"><img src="{}" alt="{}" loading="lazy" '
        'decoding="async"></a>',
        page,
        source,
        words[:200] or gettext("picture"),
    )


def voice_response(kept: KeptFile) -> HttpResponse:
    """The copy, if it is sound that browsers play by its content. Raises Http404 else."""
    stored = wiring.build_file_store().find(kept.sha256)
    if stored is None or stored.mime not in PLAYED or stored.size > LARGEST:
        raise Http404(gettext("This copy cannot be played."))
    try:
        content = stored.path.read_bytes()
    except OSError as error:
        raise Http404(gettext("This copy cannot be played.")) from error
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


#: Chats in which an id is searched: one for each account that shares it.
CHAT_LIMIT = 50


@admin.register(Message)
class MessageAdmin(OwnChatsAdmin, RecordAdmin):
    addresses = (("picture", "<int:pk>/picture/<int:index>/"),)
    list_display = ("recorded", "chat", "excerpt", "decision", "run_link")
    list_filter = (RecordedSince, "state", "direction", "reason")
    list_select_related = ("session",)
    list_excerpts = ("text", "detail")
    list_defer = ("media_text", "segments", "raw", "context_text", "header")
    text_fields = ("text", "sender_name")
    indexed_lookups = frozenset(
        {"state__exact", "reason__exact", "session__id__exact", "run__id__exact"}
    )
    search_help_text: ClassVar = _(
        "The id of a message, a sender, a group or a person is found exactly;"
        " words and names are found among the newest 100,000 messages, or the newest 20,000 of a "
        "filtered list."
    )
    change_form_template = "admin/agent/message/change_form.html"
    columns: ClassVar = {
        "recorded": Column(_("recorded at"), lambda row: format_moment(row.created_at)),
        "chat": Column(
            _("chat"),
            lambda row: with_less(
                record_link(
                    "agent_chatsession", row.session_id, row.session.title or row.session.key
                ),
                format_html('<span class="from-bot">{}</span>', _("bot"))
                if row.direction == Message.Direction.OUT
                else row.sender_name or session_list.names_in(row.session_id, row.sender_id),
            ),
        ),
        # the chat, opened where the message was said
        "chat_link": Column(
            _("chat"),
            lambda row: format_html(
                '<a href="{}?around={}#m{}">{}</a>',
                reverse("admin:agent_chatsession_change", args=(row.session_id,)),
                *(row.pk, row.pk, row.session),
            ),
        ),
        "sender": Column(_("sender"), lambda row: _sender(row)),
        "excerpt": Column(_("text"), lambda row: clamp_text(getattr(row, "text_excerpt", ""))),
        "words": Column(_("text"), lambda row: text_block(row.text)),
        "media_list": Column(_("media"), lambda row: _media_list(row)),
        "decision": Column(_("state"), lambda row: _decision(row)),
        "why": Column(_("reason"), lambda row: reasons.reason_words(row, row.detail) or "-"),
        # what went wrong, in words; the name of a row stands at the reason
        "details": Column(
            _("detail"),
            lambda row: (
                error_words.error_block("" if reasons.names_source(row) else row.detail) or "-"
            ),
        ),
        "run_link": Column(
            _("run"), lambda row: record_link("agent_run", row.run_id, f"#{row.run_id}") or "-"
        ),
        "run_links": Column(
            _("runs"),
            lambda row: record_links(
                "agent_run",
                sorted(
                    {row.run_id, *row.runs.order_by("pk").values_list("pk", flat=True)[:20]}
                    - {None}
                ),
            ),
        ),
        "segments_json": Column(_("segments"), lambda row: json_block(row.segments)),
        "event_json": Column(_("event"), lambda row: json_block(row.raw)),
    }
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "chat_link",
                    "direction",
                    "sender",
                    "words",
                    "media_list",
                    "media_text",
                    "context_text",
                    "created_at",
                )
            },
        ),
        (
            _("What became of it"),
            {
                "fields": (
                    "outcome",
                    "why",
                    "details",
                    "run_links",
                    "tool_call",
                    "settled_at",
                    "in_history",
                )
            },
        ),
        (
            _("As the client sent it"),
            {
                "fields": (
                    "message_id",
                    "happened_at",
                    "temp_group_id",
                    "segments_json",
                    "event_json",
                )
            },
        ),
    )

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **options: object
    ) -> Any:
        words = {"in_history": _("Whether the bot still sees it when it answers later messages.")}
        return super().get_form(request, obj, change, **(options | {"help_texts": words}))

    def page_context(self, request: HttpRequest, obj: Message) -> dict[str, Any]:
        """Whether it can be sent again from here, as in its chat."""
        is_resent = Message.objects.filter(resent_from=obj.pk).exists()
        failed = obj.state in (Message.State.FAILED, Message.State.UNKNOWN)
        may_resend = (
            (failed and not is_resent and obj.direction == Message.Direction.OUT)
            and obj.session.platform == ONEBOT
            and request.user.has_perm(act.SPEAK)
        )
        return {"may_resend": may_resend, "is_resent": is_resent}

    def picture_view(self, request: HttpRequest, pk: int, index: int) -> HttpResponse:
        """A thumbnail. Raises Http404 where there is no such picture any more, or it is out of
        reach."""
        require(self.has_view_permission(request))
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

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term) if term.startswith("#") else 0)
        yield Q(message_id=term)
        yield Q(sender_id=term)
        for session in ChatSession.objects.filter(peer_id=term.rpartition(":")[2]).values_list(
            "pk", flat=True
        )[:CHAT_LIMIT]:
            yield Q(session=session)


def _sender(message: Message) -> str:
    person = message.sender_id
    name = message.sender_name or (
        session_list.names_in(message.session_id, person) if person else ""
    )
    return f"{name} ({person})" if name != person else person or "-"


def _media_list(message: Message) -> str:
    """The pictures, voice and files of the message, and why some could not be fetched."""
    shown = load_media_previews([message.pk]).get(message.pk)
    if shown is None:
        return "-"
    words = (
        (thumbnail or medium.get_kind_display(), gettext(medium.reason or " "))
        for thumbnail, medium in shown.media
    )
    items = format_html_join("", "<li>{} {}</li>", words)
    return format_html('<ul class="thumbnails">{}</ul>', items)


def _decision(message: Message) -> str:
    state = render_state(message)
    words = reasons.reason_words(message, getattr(message, "detail_excerpt", ""))
    return with_less(state, words) if words else state
