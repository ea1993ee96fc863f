"""The picture of a persona on its page: shown, replaced and removed."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.types import MediaUnavailable
from agent.media.image_reader import make_portrait
from agent.models import Persona, PersonaPicture
from agent.pages.persona_file import load_picture
from tools.admin.record_pages import author_of, require
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.models.change import ChangeKind
from tools.models.row_history import record_event

#: MiB of a file that becomes a picture, and pixels of its height on the page.
MOST_MIB, SHOWN_SIDE = 16, 144
HEADERS = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}
FIELDS = ("picture", "upload", "remove")


class PictureForm(SettingsForm):
    """With a file for the picture."""

    upload = forms.FileField(
        label=_("New picture"),
        required=False,
        help_text=_("JPEG, PNG, GIF, WebP and others; it is kept as a small PNG."),
    )
    remove = forms.BooleanField(label=_("Remove the picture"), required=False)

    def _is_left_out(self, name: str, field: forms.Field) -> bool:
        """Browsers leave out a file that is not chosen."""
        return name != "upload" and super()._is_left_out(name, field)

    def clean_upload(self) -> bytes:
        """The picture as it is kept; b"" where there is no new one."""
        file = self.cleaned_data["upload"]
        if file is None:
            return b""
        if file.size > MOST_MIB << 20:
            words = gettext("The file is larger than %(limit)s MiB.")
            raise ValidationError(words % {"limit": MOST_MIB})
        try:
            return make_portrait(file.read())
        except MediaUnavailable as error:
            raise ValidationError(gettext(str(error))) from error


class PictureAdmin(SettingsAdmin):
    """With the picture, for those who may see the row, or change it."""

    addresses = (("picture", "<int:pk>/picture/"),)
    facts = ("picture",)
    unseen: ClassVar = {"upload": "", "remove": ""}

    def save_model(self, request: HttpRequest, obj: Persona, form: Any, change: bool) -> None:
        """Its history says that the picture is another one, and keeps none."""
        super().save_model(request, obj, form, change)
        rows = PersonaPicture.objects.filter(persona=obj)
        if content := form.cleaned_data.get("upload"):
            rows.update_or_create(persona=obj, defaults={"content": content})
        elif not (form.cleaned_data.get("remove") and rows.delete()[0]):
            return
        if change:
            words: list[object] = [{"changed": {"fields": ["picture"]}}]
            made = record_event(author_of(request), obj, ChangeKind.CHANGED, words)
            obj.recorded = made  # type: ignore[attr-defined] # so that it is told once

    def picture_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        row = get_object_or_404(self.get_queryset(request), pk=pk)
        require(self.has_view_permission(request, row))
        if not (content := load_picture(row)):
            raise Http404
        return HttpResponse(content, content_type="image/png", headers=HEADERS)


def show_picture(row: Persona) -> str:
    """As a field of the page; "-" for none."""
    if not PersonaPicture.objects.filter(persona=row).exists():
        return "-"
    source = reverse("admin:agent_persona_picture", args=(row.pk,))
    shown = '<span class="thumbnail"><img src="{}" alt="{}" height="{}"></span>'
    return format_html(shown, source, row, SHOWN_SIDE)
