"""The pages of the media folder and of stickers."""

import contextlib
import hashlib
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain import errors, file_types
from agent.media.media_folder import (
    LISTED,
    UPLOAD_BYTES,
    FolderEntry,
    NameTaken,
    list_folder,
    locate_media_file,
    media_folder_root,
    open_media_file,
    remove_media_file,
    safe_name,
    save_media_file,
)
from agent.models import MediaFile, Sticker
from agent.models.sticker import FOLDER
from agent.stickers.store import (
    LARGEST,
    TYPES,
    locate_sticker,
    sticker_stamp,
    sync_stickers,
    words_from_path,
)
from tools.admin.fields import refuse
from tools.admin.record_pages import (
    Column,
    PageAdmin,
    RecordAdmin,
    author_of,
    clamp_text,
    format_moment,
    render_badge,
    require,
    with_less,
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

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.fields["picture"].help_text = gettext(
            "JPEG, PNG, GIF, WebP or BMP, at most %(limit)s."
        ) % {"limit": filesizeformat(LARGEST)}

    def clean_picture(self) -> "UploadedFile[bytes]":
        """Refuse what cannot be sent, and what is there already."""
        file: UploadedFile[bytes] = self.cleaned_data["picture"]
        refuse(
            (file.size or 0) > LARGEST,
            gettext("The file is larger than %(limit)s MiB.") % {"limit": LARGEST >> 20},
        )
        content = file.read()
        file.seek(0)
        refuse(
            file_types.sniff_mime_type(content[: file_types.HEAD]) not in TYPES,
            gettext("This is no picture that can be sent."),
        )
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
    columns: ClassVar = {
        "picture": Column(_("picture"), lambda sticker: _shown(sticker, SIDE)),
        "preview": Column(_("picture"), lambda sticker: _shown(sticker, PREVIEW_SIDE)),
        "described": Column(_("words"), lambda sticker: _described(sticker)),
        # whether it can be sent, and if not, why
        "condition": Column(
            _("state"),
            lambda sticker: (
                render_badge("failed", gettext("missing on disk"))
                if sticker.is_missing
                else render_badge("failed", gettext("cannot be sent"))
                if not sticker.sha256
                else render_badge("delivered", gettext("enabled"))
                if sticker.enabled
                else render_badge("silent", gettext("disabled"))
            ),
        ),
        "used": Column(
            _("times used"),
            lambda sticker: with_less(sticker.use_count, format_moment(sticker.last_used_at)),
        ),
    }

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **options: object
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
        require(self.has_view_permission(request))
        return _picture(locate_sticker(get_object_or_404(Sticker, pk=pk).path))

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
            try:
                if target is not None and target.is_file():
                    remove_media_file(f"{FOLDER}/{sticker.path}")
            except errors.MediaError as error:
                messages.error(request, str(error))

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Sticker]) -> None:
        _switch(request, queryset, enabled=True)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Sticker]) -> None:
        _switch(request, queryset, enabled=False)


def _described(sticker: Sticker) -> str:
    words = clamp_text(str(sticker))
    return with_less(words, sticker.tags) if sticker.tags else words


def _picture(target: Path | None) -> HttpResponse:
    """The picture in a file of the folder. Raises Http404 where there is none that is shown."""
    try:
        if target is None:
            raise Http404
        with open_media_file(target) as file:
            content = file.read(LARGEST + 1)
    except (errors.MediaError, OSError) as error:
        raise Http404 from error
    mime = file_types.sniff_mime_type(content[: file_types.HEAD])
    if mime not in TYPES or len(content) > LARGEST:
        raise Http404
    return HttpResponse(content, content_type=mime, headers=HEADERS)


def _shown(sticker: Sticker, height: int) -> str:
    if sticker.is_missing or not sticker.sha256:
        return "-"
    return format_html(
        '<span class="thumbnail"><img src="{}" alt="{}" height="{}" loading="lazy" '
        'decoding="async"></span>',
        reverse("admin:agent_sticker_picture", args=(sticker.pk,)),
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


#: Entries on one page.
FOLDER_PAGE_SIZE = 100
#: Names of files that are shown as pictures.
ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp")


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One file or several; cleaned to a list."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        return [super(FilesField, self).clean(one, initial) for one in (data or [None])]


class UploadForm(forms.Form):
    """Files for one folder. Whether their names are free is found when they are put there."""

    uploads = FilesField(label=_("Files"))
    replace = forms.BooleanField(label=_("Replace files of the same name"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["uploads"].help_text = gettext("At most %(limit)s each.") % {
            "limit": filesizeformat(UPLOAD_BYTES)
        }


@admin.register(MediaFile)
class MediaFileAdmin(PageAdmin):
    """Pages over a folder instead of a table; only permissions and the history of changes are
    Django's."""

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("", view(self.folder_view), name="agent_mediafile_changelist"),
            path("add/", view(self.upload_view), name="agent_mediafile_add"),
            path("delete/", view(self.remove_view), name="agent_mediafile_delete"),
            path("picture/", view(self.picture_view), name="agent_mediafile_picture"),
        ]

    def folder_view(self, request: HttpRequest, form: UploadForm | None = None) -> HttpResponse:
        """One folder, a page at a time."""
        require(self.has_view_permission(request))
        folder = request.GET.get("folder", "").strip("/")
        try:
            found, is_capped = list_folder(folder)
        except errors.MediaError as error:
            raise Http404(str(error)) from error
        shown = Paginator(found, FOLDER_PAGE_SIZE).get_page(request.GET.get("p"))
        rows = [(entry, *_facts(entry)) for entry in shown]
        page: dict[str, Any] = {
            "form": (form or UploadForm()) if self.has_add_permission(request) else None,
            "can_remove": self.has_delete_permission(request),
            "folders": _trail(folder),
            "rows": rows,
            "has_pictures": any(is_picture for *_facts_of_it, is_picture in rows),
            "shown": shown,
            "limit": f"{LISTED:,}" if is_capped else "",
            "folder_query": urlencode({"folder": folder}),
        }
        title = str(capfirst(self.opts.verbose_name_plural))
        return self.show_page(request, "folder", title, **page)

    def picture_view(self, request: HttpRequest) -> HttpResponse:
        """A picture of the folder, to who may see the list."""
        require(self.has_view_permission(request))
        return _picture(locate_media_file(request.GET.get("path", "")))

    def upload_view(self, request: HttpRequest) -> HttpResponse:
        """Put the files of the form into the folder; what cannot be put there is named, the rest is
        kept."""
        require(self.has_add_permission(request))
        form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
        if not form.is_valid():
            return self.folder_view(request, form)
        folder = request.GET.get("folder", "").strip("/")
        for file in form.cleaned_data["uploads"]:
            self._put(request, folder, file, replace=form.cleaned_data["replace"])
        return HttpResponseRedirect(
            f"{reverse('admin:agent_mediafile_changelist')}?{urlencode({'folder': folder})}"
        )

    def remove_view(self, request: HttpRequest) -> HttpResponse:
        """Ask, and then take one file away."""
        require(self.has_delete_permission(request))
        name, title = request.GET.get("path", ""), str(capfirst(self.opts.verbose_name_plural))
        if request.method != "POST":
            folders = _trail(name.rpartition("/")[0])
            return self.show_page(request, "remove", title, path=name, folders=folders)
        try:
            remove_media_file(name)
        except errors.MediaError as error:
            messages.error(request, str(error))
        else:
            self.log_deletions(request, [MediaFile(name)])
            messages.success(request, gettext("“%(path)s” was deleted.") % {"path": name})
        query = urlencode({"folder": name.rpartition("/")[0]})
        return HttpResponseRedirect(f"{reverse('admin:agent_mediafile_changelist')}?{query}")

    def _put(
        self, request: HttpRequest, folder: str, file: "UploadedFile[bytes]", *, replace: bool
    ) -> None:
        try:
            kept = save_media_file(folder, file.name or "", file.chunks(), replace=replace)
        except NameTaken as taken:
            words = gettext(
                "“%(name)s” is there already and was left as it is. Tick the box to replace it."
            )
            messages.error(request, words % {"name": taken})
        except errors.MediaError as error:
            messages.error(request, str(error))
        else:
            self.log_addition(request, MediaFile(kept), [{"added": {}}])
            messages.success(request, gettext("“%(path)s” can be sent now.") % {"path": kept})


def _trail(folder: str) -> list[tuple[str, str]]:
    """The folders that lead to ``folder``, each with its name and its path."""
    names = [name for name in folder.split("/") if name]
    return [(name, "/".join(names[: index + 1])) for index, name in enumerate(names)]


def _facts(entry: FolderEntry) -> tuple[str, str, bool]:
    """Size and date as a list shows them, and whether it shows the picture, by its name: the
    picture's view looks at what is in it. Empty for a folder, and for what is gone."""
    facts = None if entry.is_folder else entry.facts()
    if facts is None:
        return "", "", False
    is_picture = facts[0] <= LARGEST and entry.name.lower().endswith(ENDINGS)
    return filesizeformat(facts[0]), format_moment(facts[1]), is_picture
