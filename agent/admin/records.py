"""The read-only pages of raw records: each declares what its list and the page of a row show."""

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.admin.chats.messages import render_thumbnail, thumbnail_of, voice_response
from agent.domain.budgets import SpendKind, cost_words
from agent.models import (
    Approval,
    Description,
    Digest,
    KeptFile,
    OperatorAct,
    SpendSum,
    Step,
    ToolCall,
)
from agent.pages import run_facts
from agent.pages.error_words import error_block, format_error
from agent.pages.own_chats import OwnChatsAdmin, OwnMediaAdmin, OwnPartsAdmin, own_uses
from agent.record.chats.subject_names import name_subjects
from agent.record.runs.requests import rebuild_request
from agent.runtime import wiring
from tools.admin.record_pages import (
    EXCERPT,
    Column,
    RecordAdmin,
    RecordedSince,
    choice_filter,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
    record_links,
    render_badge,
    render_state,
    require,
    with_less,
)
from tools.models import ToolConfig
from tools.text.readable import (
    arguments_text,
    drop_surrogates,
    json_block,
    shorten_text,
    text_block,
)

#: Tools offered as a filter.
TOOL_LIMIT = 200
#: Characters of a whole result that its page holds.
WHOLE_LIMIT = 1_000_000
#: Uses of a description or a copy that its page looks at.
USES = 20

RECORDED = Column(_("recorded at"), lambda row: format_moment(row.created_at))
RUN = Column(_("run"), lambda row: record_link("agent_run", row.run_id, f"#{row.run_id}") or "-")
#: The messages in which a copy or a text about it was used.
USED_IN = Column(
    _("messages"),
    lambda row: record_links(
        "agent_message", sorted(set(own_uses(row).values_list("message_id", flat=True)[:USES]))
    ),
)


@admin.register(Step)
class StepAdmin(OwnPartsAdmin, RecordAdmin):
    """Single model calls, with all that was sent and answered."""

    addresses = (("request", "<int:pk>/request/"),)
    list_display = (
        *("recorded", "run_link", "number", "phase", "finish_reason", "tokens", "latency_ms"),
        "failure",
    )
    list_filter = (RecordedSince,)
    list_excerpts = ("error",)
    list_defer = ("request", "tools", "response", "parameters", "sent", "response_rest")
    exact_lookups: ClassVar = {"run": parse_row_number}
    search_help_text: ClassVar = _("The number of a run.")
    fields = (
        *("run_link", "number", "phase", "created_at", "finish_reason", "endpoint_name", "model"),
        *("attempts_json", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"),
        *("cost", "latency_ms", "error_text", "answer_json", "rest_json", "request_link"),
        *("request_json", "sent_json", "parameters_json", "tools_json"),
    )
    columns: ClassVar = {
        "recorded": RECORDED,
        "run_link": RUN,
        "tokens": Column(
            _("tokens"), lambda step: f"{step.input_tokens:,} + {step.output_tokens:,}"
        ),
        "failure": Column(
            _("error"), lambda step: format_error(getattr(step, "error_excerpt", ""))
        ),
        "error_text": Column(_("error"), lambda step: error_block(step.error) or "-"),
        "request_json": Column(_("sent to the model"), lambda step: json_block(step.request)),
        "tools_json": Column(
            _("tools offered"),
            lambda step: json_block(
                run_facts.read_definitions(step.offer.definitions) if step.offer else step.tools
            ),
        ),
        "attempts_json": Column(_("asked before"), lambda step: json_block(step.attempts)),
        "cost": Column(
            _("cost"), lambda step: run_facts.format_cost(step.cost_nano, step.currency) or "-"
        ),
        "rest_json": Column(_("rest of the answer"), lambda step: json_block(step.response_rest)),
        "sent_json": Column(
            _("really sent"),
            lambda step: json_block(json.loads(step.sent)) if step.sent is not None else "-",
        ),
        "parameters_json": Column(
            _("parameters"),
            lambda step: json_block(json.loads(step.parameters)) if step.parameters else "-",
        ),
        "request_link": Column(
            _("request"),
            lambda step: (
                "-"
                if step.parameters is None
                else format_html(
                    '<a href="{}">{}</a>',
                    reverse("admin:agent_step_request", args=(step.pk,)),
                    gettext("Download it as it was sent"),
                )
            ),
        ),
        "answer_json": Column(_("the model's answer"), lambda step: json_block(step.response)),
    }

    def get_object(self, request: HttpRequest, object_id: str, from_field: object = None) -> Any:
        step = super().get_object(request, object_id, from_field)
        if step is not None:
            run_facts.hold_back(step, request.user)
        return step

    def get_fields(self, request: HttpRequest, obj: object = None) -> Any:
        """Without the file of the request for those who do not see what is in it."""
        hidden = () if run_facts.may_see_prompts(request.user) else ("request_link",)
        return [name for name in super().get_fields(request, obj) if name not in hidden]

    def request_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The request of a step as a file, byte for byte as it was sent."""
        step = get_object_or_404(self.get_queryset(request).select_related("offer"), pk=pk)
        require(self.has_view_permission(request, step) and run_facts.may_see_prompts(request.user))
        body = rebuild_request(step, wiring.build_file_store().shown)
        if body is None:
            raise Http404
        name = f'attachment; filename="request-{step.run_id}-{step.number}.json"'
        headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
        return HttpResponse(body, content_type="application/json", headers=headers)


#: By those that are configured: listing those called would scan the table.
ToolFilter = choice_filter(
    _("tool"),
    "tool",
    lambda request: (
        ToolConfig.objects.order_by("name").values_list("name", "name")[:TOOL_LIMIT]
        if request.user.has_perm("tools.view_toolconfig")
        else ()
    ),
    lambda rows, value: rows.filter(tool_name=value),
)


@admin.register(ToolCall)
class ToolCallAdmin(OwnPartsAdmin, RecordAdmin):
    """What each tool was given, who asked, and what came back."""

    list_display = ("recorded", "run_link", "tool", "took", "given", "answer")
    list_filter = (RecordedSince, "state", ToolFilter)
    list_excerpts = ("result", "error")
    list_defer = ("structured_content", "progress", "full_result")
    text_fields = ("result", "error", "requested_by")
    indexed_lookups = frozenset({"state__exact", "tool"})
    exact_lookups: ClassVar = {"tool_name": str, "run": parse_row_number}
    search_help_text: ClassVar = _(
        "The name of a tool or the number of a run; words of results and errors are found among"
        " the newest 100,000 calls, or the newest 20,000 of a filtered list."
    )
    fields = (
        *("tool_name", "provider_name", "outcome", "mocked", "decision", "decided_by"),
        *("requested_by", "approval_link", "run_link", "later_runs", "inner_runs", "step"),
        *("call_id", "created_at", "duration_ms", "arguments_json", "progress_text"),
        *("result_text", "whole_result", "structured_json", "error_text"),
    )
    columns: ClassVar = {
        "recorded": RECORDED,
        "run_link": RUN,
        "tool": Column(
            _("tool"),
            lambda call: (
                format_html("{} {}", call.tool_name, render_badge("mock", _("mock")))
                if call.mocked
                else call.tool_name
            ),
        ),
        "took": Column(
            _("state"),
            lambda call: with_less(
                render_state(call),
                "" if call.duration_ms is None else f"{call.duration_ms:,} ms",
            ),
        ),
        "decision": Column(
            _("verdict"), lambda call: run_facts.describe_verdict(call.verdict) or "-"
        ),
        # the runs that the call set off
        "inner_runs": Column(
            _("runs of agents"),
            lambda call: record_links(
                "agent_run",
                call.agent_runs.order_by("pk").values_list("pk", flat=True)[: run_facts.RUN_LIMIT],
            ),
        ),
        "approval_link": Column(_("approval"), lambda call: _approval_link(call)),
        # the runs that announced progress and outcome, of a call that outlasted its own
        "later_runs": Column(
            _("outcome told in"),
            lambda call: record_links(
                "agent_run",
                (run.pk for run in run_facts.load_outcome_runs([call]).get(call.pk, ())),
            ),
        ),
        "given": Column(
            _("arguments"), lambda call: clamp_text(arguments_text(call.arguments)[:EXCERPT])
        ),
        "answer": Column(
            _("result"),
            lambda call: (
                format_error(error)
                if (error := getattr(call, "error_excerpt", ""))
                else clamp_text(getattr(call, "result_excerpt", ""))
            ),
        ),
        "arguments_json": Column(_("arguments"), lambda call: json_block(call.arguments)),
        "result_text": Column(_("result"), lambda call: text_block(call.result)),
        "progress_text": Column(_("progress"), lambda call: text_block(call.progress)),
        "whole_result": Column(_("whole result"), lambda call: _whole_result(call.full_result)),
        "structured_json": Column(
            _("structured result"), lambda call: json_block(call.structured_content)
        ),
        "error_text": Column(_("error"), lambda call: error_block(call.error) or "-"),
    }


def _approval_link(call: ToolCall) -> str:
    """The question to the owners that the call waits or has waited for, and its outcome."""
    if (found := Approval.objects.only("code", "state").filter(call=call).first()) is None:
        return "-"
    link = record_link("agent_approval", found.pk, found.code)
    return format_html("{} {}", link, render_state(found))


def _whole_result(text: str) -> str:
    """The full result, if it was cut for the model; "-" otherwise."""
    if not text:
        return "-"
    count = ngettext("%(count)s character", "%(count)s characters", len(text))
    return format_html(
        '<details><summary>{}</summary><div class="words">{}</div></details>',
        count % {"count": f"{len(text):,}"},
        drop_surrogates(shorten_text(text, WHOLE_LIMIT)),
    )


@admin.register(OperatorAct)
class OperatorActAdmin(OwnChatsAdmin, RecordAdmin):
    """What operators did in chats."""

    list_display = fields = ("moment", "author_name", "kind", "chat", "run_link", "words")
    list_select_related = ("session",)
    search_help_text: ClassVar = _("The number of an act.")
    columns: ClassVar = {
        "moment": Column(_("at"), lambda act: format_moment(act.at)),
        "chat": Column(
            _("chat"),
            lambda act: record_link("agent_chatsession", act.session_id, act.session) or "-",
        ),
        "run_link": RUN,
        "words": Column(_("detail"), lambda act: clamp_text(act.detail_words)),
    }


@admin.register(Digest)
class DigestAdmin(OwnChatsAdmin, RecordAdmin):
    """Summaries of older parts of chats."""

    list_display = ("recorded", "chat", "kind", "excerpt", "message_count", "note_count", "model")
    list_filter = (RecordedSince, "kind")
    list_select_related = ("session",)
    list_excerpts = ("text",)
    indexed_lookups = frozenset({"kind__exact"})
    text_fields = ("text",)
    fields = (
        *("chat", "kind", "words", "first_run", "last_run", "message_count", "note_count"),
        *("model", "input_tokens", "output_tokens", "created_at"),
    )
    search_help_text: ClassVar = _("Words of a summary, or the number of a digest.")
    columns: ClassVar = {
        "recorded": RECORDED,
        "chat": Column(
            _("chat"),
            lambda digest: record_link("agent_chatsession", digest.session_id, digest.session),
        ),
        "excerpt": Column(
            _("text"), lambda digest: clamp_text(getattr(digest, "text_excerpt", ""))
        ),
        "words": Column(_("text"), lambda digest: text_block(digest.text)),
    }


@admin.register(Description)
class DescriptionAdmin(OwnMediaAdmin, RecordAdmin):
    """What media say in words, which is cached: deleted ones are made again."""

    rights = frozenset({"delete"})
    media_field = "description"
    actions = ("delete_selected",)  # type: ignore[assignment] # the base has none
    list_display = ("described_at", "excerpt", "model", "asked")
    list_filter = (RecordedSince,)
    list_excerpts = ("text",)
    text_fields = ("text",)
    exact_lookups: ClassVar = {"pk": parse_row_number, "content": str.lower}
    search_help_text: ClassVar = _(
        "The number of a description or a content hash; words are found among the newest "
        "100,000 descriptions."
    )
    fields = (
        *("words", "pictures", "model", "created_at", "asked", "files", "content", "tokens"),
        "messages",
    )
    columns: ClassVar = {
        "described_at": Column(_("described at"), lambda row: format_moment(row.created_at)),
        "excerpt": Column(
            _("description"), lambda row: clamp_text(getattr(row, "text_excerpt", ""))
        ),
        "words": Column(_("description"), lambda row: text_block(row.text)),
        "asked": Column(
            _("prompt"),
            lambda row: (
                row.prompt_kind if len(row.prompt_kind) < 64 else str(_("words of the sender"))
            ),
        ),
        "tokens": Column(_("tokens"), lambda row: f"{row.input_tokens:,} + {row.output_tokens:,}"),
        "pictures": Column(_("copies"), lambda row: _copies(row)),
        "messages": USED_IN,
    }


def _copies(description: Description) -> str:
    """The pictures of the newest message that used a description."""
    kept = KeptFile.objects.filter(
        uses__description=description,
        uses__message_id=own_uses(description).values_list("message_id", flat=True).first() or 0,
    ).order_by("uses__position")
    shown = format_html_join(" ", "{}", ((render_thumbnail(one),) for one in kept[:USES]))
    return format_html('<div class="thumbnails">{}</div>', shown) if shown else "-"


@admin.register(KeptFile)
class KeptFileAdmin(OwnMediaAdmin, RecordAdmin):
    """Our own copies of media in messages."""

    addresses = (("thumbnail", "<int:pk>/thumbnail/"), ("voice", "<int:pk>/voice/"))
    rights = frozenset({"delete"})
    actions = ("delete_selected",)  # type: ignore[assignment] # the base has none
    list_display = ("kept_at", "picture", "mime", "weight", "used")
    list_filter = (RecordedSince,)
    search_help_text: ClassVar = _("The number of a copy, its content hash, or its type.")
    indexed_lookups = frozenset({"mime__exact"})
    exact_lookups: ClassVar = {"pk": parse_row_number, "sha256": str.lower, "mime": str.lower}
    fields = ("picture", "mime", "weight", "sha256", "created_at", "last_used_at", "messages")
    columns: ClassVar = {
        "kept_at": Column(_("kept since"), lambda kept: format_moment(kept.created_at)),
        "used": Column(_("last used"), lambda kept: format_moment(kept.last_used_at)),
        "picture": Column(_("copy"), render_thumbnail),
        "weight": Column(_("size"), lambda kept: filesizeformat(kept.size)),
        "messages": USED_IN,
    }

    def delete_model(self, request: HttpRequest, obj: KeptFile) -> None:
        """The row, then the copy."""
        obj.delete()
        wiring.build_file_store().remove(obj.sha256)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[KeptFile]) -> None:
        hashes = list(queryset.values_list("sha256", flat=True))
        queryset.delete()
        for sha256 in hashes:
            wiring.build_file_store().remove(sha256)

    def thumbnail_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The small picture, for those who may read messages or copies."""
        return thumbnail_of(self._readable_copy(request, pk).sha256)

    def voice_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The sound, for the same people."""
        return voice_response(self._readable_copy(request, pk))

    def _readable_copy(self, request: HttpRequest, pk: int) -> KeptFile:
        require(self.has_view_permission(request) or request.user.has_perm("agent.view_message"))
        kept: KeptFile = get_object_or_404(self.get_queryset(request), pk=pk)
        return kept


@admin.register(SpendSum)
class SpendSumAdmin(RecordAdmin):
    """Tokens and cost of each day."""

    list_display = fields = ("day", "what", "whom", "calls", "tokens", "cost")
    list_filter = ("kind",)
    free_lookups = RecordAdmin.free_lookups | {"day", "subject"}
    search_help_text: ClassVar = _(
        "A day such as 2026-01-31, or a subject as the list shows it, exactly."
    )
    columns: ClassVar = {
        "what": Column(_("kind"), lambda row: str(row.get_kind_display())),
        "whom": Column(_("subject"), lambda row: _subject_link(row)),
        "tokens": Column(
            _("tokens"),
            lambda row: format_html(
                '{} + {} <div class="quiet">{}</div>',
                f"{row.input_tokens:,}",
                f"{row.output_tokens:,}",
                gettext("%(cached)s cached, %(thoughts)s reasoning")
                % {"cached": f"{row.cached_tokens:,}", "thoughts": f"{row.reasoning_tokens:,}"},
            ),
        ),
        "cost": Column(
            _("cost"), lambda row: cost_words(row.cost_nano, row.currency) if row.currency else "-"
        ),
    }

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """The names of those that the sums are of."""
        for kind in {row.kind for row in rows}:
            own = [row for row in rows if row.kind == kind and row.subject]
            names = name_subjects(kind, {row.subject for row in own})
            for row in own:
                row.subject_name = names[row.subject]

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(day=term)
        yield Q(kind__in=SpendKind.values, subject=term)


def _subject_link(row: SpendSum) -> str:
    if not row.subject:
        return "-"
    page = reverse("admin:agent_spendsum_changelist")
    # A list has looked up the names of all its rows at once.
    name = getattr(row, "subject_name", "") or name_subjects(row.kind, {row.subject})[row.subject]
    return format_html(
        '<a href="{}?{}">{}</a> {}',
        *(page, urlencode({"q": row.subject}), clamp_text(name)),
        format_html('<div class="quiet">{}</div>', row.subject) if name != row.subject else "",
    )
