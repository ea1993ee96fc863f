"""Approvals: calls that wait for an owner's word, which may be given here as well as in the
chat."""

import json
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from agent.access.players import may_decide
from agent.domain.states import MessageState
from agent.models import Approval
from agent.pages.error_words import explain_error
from agent.pages.own_chats import OwnChatsAdmin
from agent.record.runs.deferred_calls import find_news
from agent.record.waiting.approvals import ApprovalOutcome, check_changed_arguments, settle_approval
from tools.admin.fields import JSON_INPUT, IndentedJSONField
from tools.admin.record_pages import (
    Column,
    ModelForm,
    RecordAdmin,
    Rows,
    author_of,
    clamp_text,
    format_moment,
    go_back,
    parse_row_number,
    record_link,
    render_state,
    with_less,
)
from tools.text.readable import escape_invisible_chars, escape_invisible_json

APPROVE, REFUSE = "approve", "refuse"
DECIDED = {
    ApprovalOutcome.APPROVED: _(
        "Approved. The call is made in its turn; below stands what the chat heard."
    ),
    ApprovalOutcome.REFUSED: _("Refused. The call is not made; what the chat heard stands below."),
}
#: Why a decision comes too late, by the state of the call.
LATE: dict[str, Any] = {
    "approved": _(
        "This call was already approved by %(who)s, at %(when)s. Your decision changes nothing."
    ),
    "refused": _(
        "This call was already refused by %(who)s, at %(when)s. Your decision changes nothing."
    ),
    "expired": _("This call expired at %(when)s, before anybody decided. It is not made."),
}
#: Characters of the arguments that a list looks at.
EXCERPT = 500


class DecisionForm(ModelForm):
    """Yes or no, and with which arguments. The arguments are checked as the model's are."""

    decision = forms.ChoiceField(
        choices=[(APPROVE, APPROVE), (REFUSE, REFUSE)],
        error_messages={"required": _("Press one of the two buttons.")},
    )

    class Meta:
        model = Approval
        fields = ("changed_arguments",)
        field_classes = {"changed_arguments": IndentedJSONField}  # noqa: RUF012
        widgets = {"changed_arguments": forms.Textarea(attrs=JSON_INPUT)}  # noqa: RUF012 - as above

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if field := self.fields.get("changed_arguments"):  # a page that only shows has none
            field.required = False
            field.label = _("Other arguments")
            field.help_text = _(
                "Other arguments to make the call with, all of them. Empty: as the model gave them."
            )

    def clean_changed_arguments(self) -> dict[str, Any] | None:
        arguments = self.cleaned_data["changed_arguments"]
        if arguments is None:
            return None
        if not isinstance(arguments, dict):
            raise ValidationError(gettext("The arguments are a JSON object."))
        if problems := check_changed_arguments(self.instance, arguments):
            raise ValidationError(problems.splitlines())
        return cast("dict[str, Any]", arguments)


@admin.register(Approval)
class ApprovalAdmin(OwnChatsAdmin, RecordAdmin):
    list_display = ("asked", "verdict", "tool", "given", "chat_and_asker")
    list_filter = ("state",)
    are_few = True
    list_select_related = ("call", "session")
    list_defer = ("changed_arguments",)
    text_fields = ("decided_by",)
    exact_lookups: ClassVar = {"pk": parse_row_number, "code": str}
    search_help_text: ClassVar = _("A code or the number of an approval, or who decided.")
    form = DecisionForm
    change_form_template = "admin/agent/approval/change_form.html"
    readonly_fields = (
        *("outcome", "code", "tool", "asked_by", "chat", "asked", "expiry"),
        *("arguments_json", "changed_json", "decided_by", "decided_at", "told"),
    )

    columns: ClassVar = {
        # the outcome and who decided it; of a waiting one, until when it waits
        "verdict": Column(
            _("state"),
            lambda row: with_less(
                render_state(row),
                format_html(gettext("until {}"), format_moment(row.expires_at))
                if row.state == Approval.State.WAITING
                else row.decided_by,
            ),
        ),
        "chat_and_asker": Column(
            _("chat session"),
            lambda row: with_less(_chat_link(row), row.call.requested_by),
        ),
        "told": Column(_("told to the chat"), lambda row: _told(row)),
        "tool": Column(
            _("tool"), lambda row: record_link("agent_toolcall", row.call_id, row.call.tool_name)
        ),
        "asked_by": Column(_("requested by"), lambda row: row.call.requested_by),
        "chat": Column(_("chat session"), lambda row: _chat_link(row)),
        "asked": Column(_("asked"), lambda row: format_moment(row.created_at)),
        "expiry": Column(_("expires"), lambda row: format_moment(row.expires_at)),
        "given": Column(
            _("arguments"),
            lambda row: clamp_text(
                escape_invisible_chars(json.dumps(row.arguments, ensure_ascii=False)[:EXCERPT])
            ),
        ),
        "arguments_json": Column(_("arguments"), lambda row: _exact(row.arguments)),
        "changed_json": Column(_("changed arguments"), lambda row: _exact(row.changed_arguments)),
    }

    def get_queryset(self, request: HttpRequest) -> Rows:
        return super().get_queryset(request).select_related("call", "session")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The buttons that decide stand in the page's bar; other arguments are rarely given."""
        shown = ["outcome", "tool", "asked_by", "chat", "asked", "expiry", "code", "arguments_json"]
        if obj is not None and self.has_change_permission(request, obj):
            other = {"fields": ["changed_arguments"], "classes": ["collapse"]}
            return [(None, {"fields": shown}), (_("With other arguments"), other)]
        shown += ["changed_json", "decided_by", "decided_at", "told"]
        return [(None, {"fields": shown})]

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Only what waits can be decided; what a playground asks for, by who may change tools."""
        if not request.user.has_perm("agent.change_approval"):
            return False
        if not isinstance(obj, Approval):
            return True
        return _is_open(obj) and may_decide(request.user, obj.session.account)

    def save_model(self, request: HttpRequest, obj: Approval, form: Any, change: bool) -> None:
        """Decide once; a second decision gets a message that it is too late."""
        by = author_of(request).get_username()
        is_approval = form.cleaned_data["decision"] == APPROVE
        arguments = form.cleaned_data["changed_arguments"] if is_approval else None
        request.ruling = settle_approval(  # type: ignore[attr-defined]
            obj.pk, is_approval=is_approval, by=by, arguments=arguments
        )

    def response_change(self, request: HttpRequest, obj: Model) -> HttpResponse:
        ruling: Any = getattr(request, "ruling", None)
        if words := DECIDED.get(ruling):
            messages.success(request, words)
        else:
            messages.warning(request, _too_late(Approval.objects.get(pk=obj.pk)))
        return go_back(request, "admin:agent_approval_change", obj.pk)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *arguments: Any, **options: Any
    ) -> HttpResponse:
        """A late decision gets a message on the page of the approval, not a "forbidden"
        response."""
        is_decision = request.method == "POST" and request.user.has_perm("agent.change_approval")
        approval = (
            self.get_object(request, unquote(object_id)) if is_decision and object_id else None
        )
        if approval is not None and not _is_open(approval):
            messages.warning(request, _too_late(approval))
            return go_back(request, "admin:agent_approval_change", approval.pk)
        return super().changeform_view(request, object_id, *arguments, **options)


def _chat_link(approval: Approval) -> str:
    session = approval.session
    return record_link("agent_chatsession", session.pk, session.title or session.key)


def _told(approval: Approval) -> str:
    """What became of the message that tells the chat the outcome of the call."""
    news = find_news(approval.call_id)
    if news is None:
        return "-"
    detail = explain_error(news.detail).sentence
    if news.state == MessageState.ANSWERED:
        detail = ""
    return format_html(
        '{} {} <div class="quiet">{}</div>',
        render_state(news),
        record_link("agent_message", news.pk, f"#{news.pk}"),
        clamp_text(escape_invisible_chars(detail)),
    )


def _exact(arguments: dict[str, Any] | None) -> str:
    """Arguments as a block in which nothing is cut or unseen: they are what is decided about."""
    return (
        format_html('<pre class="json">{}</pre>', escape_invisible_json(arguments))
        if arguments
        else "-"
    )


def _too_late(approval: Approval) -> str:
    """Why a decision comes too late: who was faster, and when."""
    at = f"{timezone.localtime(approval.decided_at or approval.expires_at):%Y-%m-%d %H:%M:%S}"
    return str(LATE.get(approval.state, LATE["expired"])) % {"who": approval.decided_by, "when": at}


def _is_open(approval: Approval) -> bool:
    return approval.state == Approval.State.WAITING and approval.expires_at > timezone.now()
