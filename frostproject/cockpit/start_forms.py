"""What is entered on the start page itself: the default persona, and the owners of an account."""

from typing import Any

from django import forms
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.manners import MarkdownStyle
from agent.markdown.drawing_packages import explain_missing
from agent.models import Manners, Persona
from agent.record.settings.lively_groups import (
    find_lively_row,
    make_groups_lively,
    take_back_lively,
)
from onebot.models import Bot
from tools.admin.record_pages import author_of, parse_row_number
from tools.admin.settings_page import SettingsForm
from tools.models import row_history, tool_config

#: What the default persona is called until somebody gives it a name.
UNNAMED = "default"


class PersonaStepForm(SettingsForm):
    """Name and prompt of the default persona; the rest is on its own page."""

    class Meta:
        model = Persona
        fields = ("name", "prompt")
        widgets = {"prompt": forms.Textarea(attrs={"rows": 5, "class": "vLargeTextField"})}  # noqa: RUF012 - Django's own way to say it
        help_texts = {  # noqa: RUF012 - as above
            "prompt": _("Who it is and how it talks. It counts from the next message on."),
        }

    def clean_prompt(self) -> str:
        prompt: str = self.cleaned_data["prompt"]
        if not prompt.strip():
            raise ValidationError(_("Write at least a sentence about who it is."))
        return prompt


class OwnersStepForm(SettingsForm):
    """The owners of one account."""

    class Meta:
        model = Bot
        fields = ("owners",)

    owners = forms.CharField(
        label=_("QQ numbers"),
        max_length=2_000,
        help_text=_("Your own number first; several with a space between."),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )

    def clean_owners(self) -> str:
        text: str = self.cleaned_data["owners"]
        if problem := tool_config.check_ids(text):
            raise ValidationError(problem)
        return "\n".join(tool_config.parse_ids(text))


def persona_form(row: Persona, request: HttpRequest, prompt: str) -> PersonaStepForm:
    """The form, filled in by ``request`` where that is what it posts; else ``prompt`` stands in an
    empty one."""
    if request.POST.get("step") == "persona":
        return PersonaStepForm(request.POST, instance=row)
    name = "" if row.name == UNNAMED else row.name
    return PersonaStepForm(instance=row, initial={"name": name, "prompt": row.prompt or prompt})


def owners_form(bot: Bot, request: HttpRequest) -> OwnersStepForm:
    """The same for the owners of ``bot``."""
    if request.POST.get("step") == "owners" and request.POST.get("bot") == str(bot.pk):
        return OwnersStepForm(request.POST, instance=bot, auto_id=f"id_{bot.pk}_%s")
    owners = {"owners": " ".join(tool_config.parse_ids(bot.owners))}
    return OwnersStepForm(initial=owners, instance=bot, auto_id=f"id_{bot.pk}_%s")


def save_step(request: HttpRequest, site: AdminSite) -> bool:
    """Store what ``request`` posts; False where it says something that cannot be. Raises
    PermissionDenied and Http404."""
    match request.POST.get("step"):
        case "persona":
            persona = get_object_or_404(Persona, is_default=True)
            return _save_row(request, site, persona, persona_form(persona, request, ""))
        case "owners":
            bot = get_object_or_404(Bot, pk=parse_row_number(request.POST.get("bot", "")))
            return _save_row(request, site, bot, owners_form(bot, request))
        case "group":
            return _save_group(request, site)
        case _:
            raise Http404


def _save_row(request: HttpRequest, site: AdminSite, row: Model, form: SettingsForm) -> bool:
    admin = site.get_model_admin(type(row))
    if not admin.has_change_permission(request, row):
        raise PermissionDenied
    if not form.is_valid():
        return False
    stamps = [one.name for one in row._meta.fields if getattr(one, "auto_now", False)]
    with row_history.record_changes(author_of(request), row):
        row.save(update_fields=[*form.fields, *stamps])
    admin.log_change(request, row, [{"changed": {"fields": form.changed_data}}])
    return True


def describe_lively(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """What the page shows of the button for groups: the row that is on, what it lacks, and whether
    the user may press it."""
    row = find_lively_row()
    is_drawn = row is not None and row.markdown == MarkdownStyle.PICTURE
    return {
        "row": row,
        "lacking": explain_missing() if is_drawn else "",
        "may_change": _may_make_lively(request, site),
    }


def _may_make_lively(request: HttpRequest, site: AdminSite) -> bool:
    admin = site.get_model_admin(Manners)
    return admin.has_add_permission(request) and admin.has_change_permission(request)


def _save_group(request: HttpRequest, site: AdminSite) -> bool:
    if not _may_make_lively(request, site):
        raise PermissionDenied
    admin, author = site.get_model_admin(Manners), author_of(request)
    if request.POST.get("lively") == "on":
        row = make_groups_lively(gettext("A lively group"), author)
        admin.log_change(request, row, gettext("Made groups lively."))
    elif taken := take_back_lively(author):
        admin.log_change(request, taken, gettext("Took back what made groups lively."))
    return True
