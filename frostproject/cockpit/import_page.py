"""The page that takes a file of another program: all rows are shown before they are made."""

import tempfile
from pathlib import Path
from typing import Any

from django import forms
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy

from frostproject.imports.making import make, may_add, plan
from frostproject.imports.plan import Found, ImportRefused, Kind
from frostproject.imports.reading import read_found, seal, unseal
from frostproject.imports.sources import MOST_IN_FOLDER, read_source
from tools.admin.record_pages import author_of


class ImportForm(forms.Form):
    """The file."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("A folder as a ZIP; at most 16 MiB a file, 64 MiB a ZIP."),
    )


def import_page(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """Ask for a file, show what would come of it, and make that once it is confirmed. What was
    uploaded is not kept: the page carries the plan, sealed."""
    user: Any = request.user
    if not any(may_add(user, kind) for kind in Kind):
        raise PermissionDenied
    page: dict[str, Any] = {"title": _("Import"), "form": ImportForm()}
    if request.method != "POST":
        return page
    try:
        sealed = request.POST.get("sealed", "")
        form = ImportForm(request.POST, request.FILES)
        if not sealed and not form.is_valid():
            return page | {"form": form}
        found = unseal(sealed) if sealed else _read(form.cleaned_data["file"])
        planned = plan(found, user)
        if sealed:
            make(planned, author_of(request))
        return page | {
            "plan": planned,
            "is_made": bool(sealed),
            "sealed": "" if sealed or not planned.made else seal(found),
        }
    except ImportRefused as error:
        return page | {"problem": str(error)}


def _read(upload: "UploadedFile[Any]") -> Found:
    if (upload.size or 0) > MOST_IN_FOLDER:
        why = _("%(file)s is larger than %(most)d MiB.")
        raise ImportRefused(why, file=upload.name, most=MOST_IN_FOLDER >> 20)
    with tempfile.TemporaryDirectory(prefix="frost-import-") as folder:
        path = Path(folder) / Path(upload.name or "file").name
        with path.open("wb") as file:
            for chunk in upload.chunks():
                file.write(chunk)
        return read_found(read_source(path))
