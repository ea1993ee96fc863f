"""The media folder's page: what the bot may send, uploads, and taking files away."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from agent.admin.media.stickers import HEADERS
from agent.domain import errors, file_types
from agent.media.media_folder import (
    LISTED,
    UPLOAD_BYTES,
    FolderEntry,
    NameTaken,
    list_folder,
    locate_media_file,
    open_media_file,
    remove_media_file,
    save_media_file,
)
from agent.models import MediaFile
from agent.stickers.store import LARGEST, TYPES
from tools.admin.record_pages import LoggedAdmin, format_moment

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
class MediaFileAdmin(LoggedAdmin):
    """Pages over a folder instead of a table; only permissions and the history of changes are
    Django's."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
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
        if not self.has_view_permission(request):
            raise PermissionDenied
        folder = request.GET.get("folder", "").strip("/")
        try:
            found, is_capped = list_folder(folder)
        except errors.MediaError as error:
            raise Http404(str(error)) from error
        shown = Paginator(found, FOLDER_PAGE_SIZE).get_page(request.GET.get("p"))
        rows = [(entry, *_facts(entry)) for entry in shown]
        page = {
            "form": (form or UploadForm()) if self.has_add_permission(request) else None,
            "can_remove": self.has_delete_permission(request),
            "folders": _trail(folder),
            "rows": rows,
            "has_pictures": any(is_picture for *_facts_of_it, is_picture in rows),
            "shown": shown,
            "limit": f"{LISTED:,}" if is_capped else "",
            "folder_query": urlencode({"folder": folder}),
        }
        return self._page(request, "folder", page)

    def picture_view(self, request: HttpRequest) -> HttpResponse:
        """A picture of the folder, to who may see the list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        target = locate_media_file(request.GET.get("path", ""))
        try:
            if target is None:
                raise errors.MediaError("no such file")
            with open_media_file(target) as file:
                content = file.read(LARGEST + 1)
        except (errors.MediaError, OSError) as error:
            raise Http404 from error
        mime = file_types.sniff_mime_type(content[: file_types.HEAD])
        if mime not in TYPES or len(content) > LARGEST:
            raise Http404
        return HttpResponse(content, content_type=mime, headers=HEADERS)

    def upload_view(self, request: HttpRequest) -> HttpResponse:
        """Put the files of the form into the folder; what cannot be put there is named, the rest is
        kept."""
        if not self.has_add_permission(request):
            raise PermissionDenied
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
        if not self.has_delete_permission(request):
            raise PermissionDenied
        name = request.GET.get("path", "")
        if request.method != "POST":
            return self._page(
                request, "remove", {"path": name, "folders": _trail(name.rpartition("/")[0])}
            )
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

    def _page(self, request: HttpRequest, name: str, page: dict[str, Any]) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": capfirst(self.opts.verbose_name_plural),
            **page,
        }
        return TemplateResponse(request, f"admin/agent/mediafile/{name}.html", context)


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
