"""Secrets: entered and replaced by name, and never shown again."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.record_pages import Column, record_link, render_badge
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.http_tools.validation import secret_names
from tools.models import HttpTool, Secret
from tools.secrets.hosts import SecretHosts

TOOLS_READ = 1_000
"""The most HTTP tools that are searched; no operator maintains more by hand."""


def tools_by_secret() -> dict[str, list[HttpTool]]:
    """The tools that name each secret, by the secret's name, in the order of their names."""
    uses: dict[str, list[HttpTool]] = {}
    for tool in HttpTool.objects.order_by("name")[:TOOLS_READ]:
        for name in secret_names(tool.to_settings()):
            uses.setdefault(name, []).append(tool)
    return uses


def tool_links(tools: Iterable[HttpTool]) -> SafeString | str:
    """Links to the pages of ``tools``; "-" for none."""
    return (
        format_html_join(
            ", ", "{}", ((record_link("tools_httptool", tool.pk, tool.name),) for tool in tools)
        )
        or "-"
    )


VALUE_LIMIT = 8_000
"""Characters of a secret, which is one line: it is used in a header or a URL."""
HOSTS_HELP = _(
    "Where the secret may be sent, one a line: api.example.com, or *.example.com for every name"
    " below it, with :8443 behind it for"
    " another port. Requests have to be https; http://192.168.1.5:8123 permits them in the clear."
    " program:npx permits MCP servers"
    " that are started with npx. Whoever answers at one of these hosts can read the secret."
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def build_secret_field(**options: Any) -> forms.CharField:
    """A field whose value is sent by the browser and never sent to it."""
    widget = forms.PasswordInput(
        attrs={"class": "vTextField", "autocomplete": "new-password", "spellcheck": "false"}
    )
    return forms.CharField(
        widget=widget, max_length=VALUE_LIMIT, validators=[refuse_control_characters], **options
    )


class HostsField(forms.CharField):
    """The hosts of a secret, one a line; cleaned to the text that
    :class:`tools.secrets.hosts.SecretHosts` is stored as."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": 3, "class": "vLargeTextField template", "spellcheck": "false"}
        )
        super().__init__(
            widget=widget, label=_("Hosts"), help_text=HOSTS_HELP, max_length=VALUE_LIMIT, **options
        )

    def clean(self, value: object) -> str:
        try:
            return str(SecretHosts.parse(super().clean(value)))
        except ValueError as error:
            raise ValidationError(str(error)) from error


def refuse_control_characters(value: str) -> None:
    """Raise ValidationError for what no header can carry. The message does not hold the value."""
    if _CONTROL.search(value):
        raise ValidationError(
            gettext(
                "The secret holds a line break or another control character: copy it again, in one"
                " line."
            )
        )


#: Secrets that a warning names.
LISTED = 1_000
UNREADABLE = _(
    "The installation's secret key (the file secret_key in its data folder) is another one than"
    " when these secrets were stored,"
    " and nobody can read them any more. Open each and enter it anew, or put the old file back:"
)

SENT_NOWHERE = _(
    "These secrets name no host and are sent nowhere. Open each, write down where it may be sent,"
    " and enter its value again:"
)


class SecretForm(SettingsForm):
    """A name, hosts and, write-only, a value. A secret that is there already keeps its value while
    none is entered.

    Hosts change only together with a value, for every user: else the stored one could be sent
    anywhere.
    """

    value = build_secret_field(label=_("Value"), required=False)
    hosts = HostsField()

    class Meta:
        model = Secret
        fields = ("name",)
        error_messages = {  # noqa: RUF012 - Django's own way to say it
            "name": {
                "unique": _(
                    "There is a secret of this name already: open it in the list to replace its"
                    " value."
                )
            }
        }

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        if "value" in self.fields:
            is_kept = self.instance.pk is not None and self.instance.is_readable
            self.fields["value"].required = not is_kept
            self.fields["value"].help_text = (
                gettext(
                    "Empty: the stored value stays. It cannot be shown; what you enter here takes"
                    " its place. Whoever changes the hosts enters the value again: nobody is to"
                    " send a secret to a new host who does not know it."
                )
                if is_kept
                else gettext(
                    "E.g. an API key. It is stored encrypted and never shown again; you can only"
                    " replace it."
                )
            )

        if "hosts" in self.fields:
            self.initial["hosts"] = self.instance.hosts

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        hosts = cleaned.get("hosts", self.instance.hosts)
        if (
            self.instance.pk is not None
            and hosts != self.instance.hosts
            and "value" in cleaned
            and not cleaned["value"]
        ):
            self.add_error("value", gettext("The hosts have changed: enter the value again."))
        return cleaned

    def _post_clean(self) -> None:
        self.instance.hosts = self.cleaned_data.get("hosts", self.instance.hosts)
        if value := self.cleaned_data.get("value"):
            self.instance.value = value
        super()._post_clean()


def describe_hosts_change(before: str, after: str) -> str:
    """The entry in the history of a secret when its hosts change."""
    words = gettext("Hosts changed from %(before)s to %(after)s; the value was entered again.")
    return words % {
        "before": SecretHosts.stored(before).words,
        "after": SecretHosts.stored(after).words,
    }


@admin.register(Secret)
class SecretAdmin(SettingsAdmin):
    form = SecretForm
    search_fields = ("name",)
    change_form_template = "admin/tools/secret/change_form.html"
    fieldsets = ((None, {"fields": ("name", "hosts", "value", "used_by", "changed")}),)
    facts = ("used_by", "changed")
    fixed = ("name",)  # tools use it
    # Users who may only view get no input for the value.
    unseen: ClassVar = {"hosts": "host_list", "value": ""}

    def get_list_display(self, request: HttpRequest) -> Any:
        """The tools are searched once for all rows."""
        uses = cache(tools_by_secret)

        @admin.display(description=_("used by"))
        def used_by(secret: Secret) -> str:
            return tool_links(uses().get(secret.name, ()))

        return ("name", "state", "host_list", used_by, "changed")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if request.method == "GET":
            secrets = Secret.objects.order_by("name")
            broken = [secret.name for secret in secrets[:LISTED] if not secret.is_readable]
            homeless = secrets.filter(hosts="").values_list("name", flat=True)[:LISTED]
            for level, words, names in (
                (messages.ERROR, UNREADABLE, broken),
                (messages.WARNING, SENT_NOWHERE, list(homeless)),
            ):
                if names:
                    self.message_user(request, f"{words} {', '.join(names)}", level)
        return super().changelist_view(request, extra_context)

    def save_model(self, request: HttpRequest, obj: Secret, form: object, change: bool) -> None:
        """Where a secret may go from now on is an event of its own in its history."""
        before = Secret.objects.get(pk=obj.pk).hosts if change else ""
        super().save_model(request, obj, form, change)
        if change and before != obj.hosts:
            self.log_change(request, obj, describe_hosts_change(before, obj.hosts))

    @admin.display(description=_("state"))
    def state(self, secret: Secret) -> str:
        return (
            render_badge("succeeded", _("stored"))
            if secret.is_readable
            else render_badge("failed", _("enter anew"))
        )

    host_list = Column(
        _("hosts"),
        lambda row: row.hosts.replace("\n", ", ") or render_badge("failed", _("sent nowhere")),
    )
    used_by = Column(_("used by"), lambda row: tool_links(tools_by_secret().get(row.name, ())))

    def page_context(self, request: HttpRequest, secret: Secret | None) -> dict[str, Any]:
        return {
            "is_broken": secret is not None and not secret.is_readable,
            "placeholder": f"{{secret:{secret.name}}}" if secret else "",
        }

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What is deleted, and which tools will miss it."""
        listed, *rest = super().get_deleted_objects(objs, request)
        uses = tools_by_secret()
        warnings = [
            format_html(
                '<strong class="failure">{}</strong> {}',
                gettext("“%(name)s” is in use; without it these tools fail:")
                % {"name": secret.name},
                tool_links(uses[secret.name]),
            )
            for secret in objs
            if secret.name in uses
        ]
        return (warnings + list(listed), *rest)
