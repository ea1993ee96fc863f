"""Stickers: the bot's collection, with the words each is chosen by."""

import contextlib
import hashlib
from pathlib import Path
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain import errors, file_types
from agent.media.media_folder import (
    NameTaken,
    media_folder_root,
    open_media_file,
    remove_media_file,
    safe_name,
    save_media_file,
)
from agent.models import Sticker
from agent.models.sticker import FOLDER
from agent.stickers.store import (
    LARGEST,
    TYPES,
    locate_sticker,
    sticker_stamp,
    sync_stickers,
    words_from_path,
)
from tools.admin.record_pages import (
    Column,
    PageAdmin,
    RecordAdmin,
    author_of,
    clamp_text,
    format_moment,
    render_badge,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.live_rows import ConfigVersion, LiveKind
from tools.models.row_history import record_changes

#: Names that are tried for a file whose own one is taken.
NAMES = 1_000
#: Pixels of a picture's height on its page and in the list.
SIDE, PREVIEW_SIDE = 144, 64
#: What browsers may do with a picture that was put into the folder.
HEADERS = {
    "Cache-Control": "private, max-age=60",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


class StickerForm(SettingsForm):
    """The words of a sticker."""

    class Meta:
        model = Sticker
        fields = ("words", "tags", "enabled")
        widgets = {"words": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})}  # noqa: RUF012


class NewStickerForm(StickerForm):
    """A new sticker with its picture; without words it has those of the file's name."""

    picture = forms.FileField(label=_("Picture"))

    field_order = ("picture",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["picture"].help_text = gettext(
            "JPEG, PNG, GIF, WebP or BMP, at most %(limit)s."
        ) % {"limit": filesizeformat(LARGEST)}

    def clean_picture(self) -> "UploadedFile[bytes]":
        """Refuse what cannot be sent, and what is there already."""
        file: UploadedFile[bytes] = self.cleaned_data["picture"]
        if (file.size or 0) > LARGEST:
            raise ValidationError(
                gettext("The file is larger than %(limit)s MiB.") % {"limit": LARGEST >> 20}
            )
        content = file.read()
        file.seek(0)
        if file_types.sniff_mime_type(content[: file_types.HEAD]) not in TYPES:
            raise ValidationError(gettext("This is no picture that can be sent."))
        sha256 = hashlib.sha256(content).hexdigest()
        if known := Sticker.objects.filter(sha256=sha256).first():
            raise ValidationError(
                gettext("This picture is there already: %(sticker)s") % {"sticker": known}
            )
        self.instance.sha256 = sha256
        return file

    def clean(self) -> dict[str, Any] | None:
        """Put the picture into the folder once everything else is in order."""
        cleaned = super().clean()
        if not self.errors:
            try:
                self.instance.path = _put(self.cleaned_data["picture"])
            except (errors.MediaError, OSError) as error:
                self.add_error("picture", str(error))
        return cleaned


@admin.register(Sticker)
class StickerAdmin(SettingsAdmin, RecordAdmin):
    addresses = (("picture", "<int:pk>/picture/"),)
    rights = PageAdmin.rights
    form = StickerForm
    actions = ("enable", "disable", "delete_selected")  # type: ignore[assignment] # the base has none
    list_display = ("preview", "described", "condition", "used")
    list_display_links = ("described",)
    list_filter = ("enabled", "is_missing")
    text_fields = ("words", "tags", "path")
    search_help_text: ClassVar = _("Words, tags or names of files, or #number of a sticker.")
    change_form_template = "admin/change_form.html"
    facts = ("path", "condition", "sha256", "use_count", "last_used_at", "created_at")
    fixed = ("picture",)
    fieldsets = (
        (None, {"fields": ("picture", "words", "tags", "enabled")}),
        (_("File"), {"fields": facts}),
    )
    picture = Column(_("picture"), lambda sticker: _shown(sticker, SIDE))
    preview = Column(_("picture"), lambda sticker: _shown(sticker, PREVIEW_SIDE))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        new = {} if obj else {"form": NewStickerForm, "fields": None}
        return super().get_form(request, obj, change, **options | new)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, after a look at the folder."""
        if request.method == "GET":
            sync_stickers()
        return super().changelist_view(request, extra_context)

    def picture_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The picture itself, to who may see the list."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        sticker = get_object_or_404(Sticker, pk=pk)
        target = locate_sticker(sticker.path)
        try:
            if target is None:
                raise errors.MediaError(sticker.path)
            with open_media_file(target) as file:
                content = file.read(LARGEST)
        except errors.MediaError as error:
            raise Http404(str(error)) from error
        mime = file_types.sniff_mime_type(content[: file_types.HEAD])
        if mime not in TYPES:
            raise Http404
        return HttpResponse(content, content_type=mime, headers=HEADERS)

    def save_model(self, request: HttpRequest, obj: Sticker, form: Any, change: bool) -> None:
        """Store the row, in place of one that a scan of the folder has just made for the file."""
        if not change:
            obj.pk = Sticker.objects.filter(path=obj.path).values_list("pk", flat=True).first()
            obj.stamp = sticker_stamp(obj.path)
            obj.words = obj.words or words_from_path(obj.path)
        super().save_model(request, obj, form, change)

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The question whether to delete it shows what it is."""
        sticker = self.get_object(request, object_id)
        picture = _shown(sticker, SIDE) if sticker else ""
        return super().delete_view(
            request, object_id, {**(extra_context or {}), "picture": picture}
        )

    def delete_model(self, request: HttpRequest, obj: Sticker) -> None:
        """The row and the file, which would make a new row otherwise."""
        self._delete_files(request, [obj])
        obj.delete()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Sticker]) -> None:
        self._delete_files(request, list(queryset))
        queryset.delete()

    def _delete_files(self, request: HttpRequest, stickers: list[Sticker]) -> None:
        for sticker in stickers:
            target = locate_sticker(sticker.path)
            if target is None or not target.is_file():
                continue
            try:
                remove_media_file(f"{FOLDER}/{sticker.path}")
            except errors.MediaError as error:
                messages.error(request, str(error))

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Sticker]) -> None:
        _switch(request, queryset, enabled=True)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Sticker]) -> None:
        _switch(request, queryset, enabled=False)

    @admin.display(description=_("words"))
    def described(self, sticker: Sticker) -> str:
        words = clamp_text(str(sticker))
        return (
            format_html('{} <div class="quiet">{}</div>', words, sticker.tags)
            if sticker.tags
            else words
        )

    @admin.display(description=_("state"))
    def condition(self, sticker: Sticker) -> str:
        """Whether it can be sent, and if not, why."""
        if sticker.is_missing:
            return render_badge("failed", gettext("missing on disk"))
        if not sticker.sha256:
            return render_badge("failed", gettext("cannot be sent"))
        return (
            render_badge("delivered", gettext("enabled"))
            if sticker.enabled
            else render_badge("silent", gettext("disabled"))
        )

    used = Column(
        _("times used"),
        lambda sticker: format_html(
            '{} <div class="quiet">{}</div>', sticker.use_count, format_moment(sticker.last_used_at)
        ),
    )


def _shown(sticker: Sticker, height: int) -> str:
    if sticker.is_missing or not sticker.sha256:
        return "-"
    source = reverse("admin:agent_sticker_picture", args=(sticker.pk,))
    return format_html(
        '<span class="thumbnail"><img src="{}" alt="{}" height="{}" loading="lazy" '
        'decoding="async"></span>',
        source,
        sticker,
        height,
    )


def _switch(request: HttpRequest, stickers: QuerySet[Sticker], *, enabled: bool) -> None:
    with record_changes(author_of(request), *stickers):
        ConfigVersion.bump(LiveKind.STICKERS)
        stickers.update(enabled=enabled)


def _put(file: "UploadedFile[bytes]") -> str:
    """Store an uploaded picture in the folder, under a new name if its name is taken; its path
    there."""
    (media_folder_root() / FOLDER).mkdir(parents=True, exist_ok=True)
    ending = {"image/jpeg": ".jpg"}.get(
        kind := file_types.sniff_mime_type(file.read(file_types.HEAD)), f".{kind.partition('/')[2]}"
    )
    file.seek(0)
    stem = Path(safe_name(file.name or "")).stem
    for number in range(1, NAMES):
        name = f"{stem}-{number}{ending}" if number > 1 else f"{stem}{ending}"
        with contextlib.suppress(NameTaken):
            return save_media_file(FOLDER, name, file.chunks(), replace=False).removeprefix(
                f"{FOLDER}/"
            )
    raise NameTaken(stem)
