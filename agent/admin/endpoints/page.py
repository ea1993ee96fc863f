"""Model endpoints: setting them up, seeing how they fare, forgetting what was learnt of them."""

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.admin.endpoints.form import (
    EndpointForm,
    describe_presets,
    effort_warning,
    fill_in,
    stored_secrets,
)
from agent.domain.endpoint import Endpoint
from agent.llm.client.model_list import ListedModel
from agent.llm.providers.presets import PRESETS
from agent.models import EndpointStatus, ModelEndpoint
from agent.pages.endpoints.checks import ModelsUnknown, load_models, row_endpoint, try_row
from agent.pages.endpoints.state import (
    describe_factor,
    describe_price,
    describe_state,
    find_roles,
    is_left_over,
    list_abilities,
    list_learnt,
)
from tools.admin.changes import HistoryAdmin
from tools.admin.concurrent_edits import ConcurrentEdits
from tools.admin.record_pages import parse_row_number, render_badge
from tools.admin.row_history import record_changes
from tools.secrets.masked import MASK
from tools.secrets.url_masking import mask_url

_ABILITIES = ("can_chat", "can_tools", "can_see", "can_think", "can_transcribe", "can_embed")
_COLLAPSED = ("collapse",)
SHOWN = 100
"""Models on the page that works without a script."""
_ADDRESS_FIELDS = ("base_url", "keys", "headers")
MOST_TESTED = 5
"""Endpoints that the action of the list tests."""

if TYPE_CHECKING:
    Rows = QuerySet[ModelEndpoint]
else:
    Rows = QuerySet


class EndpointChangeList(ChangeList):
    """Each row knows what it is asked for."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        roles = find_roles()
        rows: Any = self.result_list
        for row in rows:
            row.asked_for = roles.get(row.pk, [])


@admin.register(ModelEndpoint)
class EndpointAdmin(ConcurrentEdits, HistoryAdmin):
    """An endpoint costs money and is sent what people say: operators set up those that are public,
    superusers any (:mod:`agent.pages.endpoints.checks`)."""

    form = EndpointForm
    list_display = ("endpoint", "model_name", "abilities", "state", "roles", "price", "enabled")
    list_display_links = ("endpoint",)
    list_select_related = ("status",)
    search_fields = ("name", "model")
    readonly_fields = ("created_at", "updated_at")
    actions = ("test_selected",)
    change_form_template = "admin/agent/modelendpoint/change_form.html"

    class Media:
        js: ClassVar = ["agent/endpoint.js"]
        css: ClassVar = {"all": ["agent/endpoint.css"]}

    # --- Who may do what --------------------------------------------------------

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What the environment names would be there again at once."""
        is_named = (
            isinstance(obj, ModelEndpoint) and bool(obj.environment) and not is_left_over(obj)
        )
        return super().has_delete_permission(request, obj) and not is_named

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """No deletion of many at once: it would not ask each row."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    # --- Forms ------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        looks = obj is not None and not self.has_change_permission(request, obj)
        secret = ("key_count", "header_names") if looks else ("keys", "headers")
        address = "address" if looks else "base_url"
        filled = () if looks else ("filled",)
        thinking = ("thinking", "effort", "temperature", "top_p", "max_tokens", "extra_body")
        limits = ("timeout_seconds", "max_concurrent", "calls_per_minute")
        prices = ("price_input", "price_cached", "price_output", "price_reasoning", "currency")
        parts = [
            (None, {"fields": ("preset", address, secret[0], "model", "name", "enabled", *filled)}),
            (_("What the model can do"), {"fields": (_ABILITIES,)}),
            (_("Thinking and parameters"), {"classes": _COLLAPSED, "fields": thinking}),
            (_("Prices"), {"classes": _COLLAPSED, "fields": prices}),
            (_("Window and tools"), {"fields": ("window", "max_tools", "text_calls")}),
            (
                _("Streaming, limits and headers"),
                {
                    "classes": _COLLAPSED,
                    "fields": ("streamed", "piece_seconds", *limits, secret[1], "position"),
                },
            ),
        ]
        history = (_("History"), {"fields": ("created_at", "updated_at")})
        return [*parts, *([history] if obj else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        looks = obj is not None and not self.has_change_permission(request, obj)
        shown = ("address", "key_count", "header_names") if looks else ()
        return (*self.readonly_fields, *shown)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        made = super().get_form(request, obj, change, **options)
        return type("EndpointForm", (made,), {"user": request.user})

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return EndpointChangeList

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """What was learnt of another address or model counts no more."""
        if change and {"base_url", "model", "preset"} & set(form.changed_data):
            obj.learnt, obj.token_factor = {}, 1.0
        super().save_model(request, obj, form, change)
        if change and {"base_url", "model", "keys"} & set(form.changed_data):
            EndpointStatus.objects.filter(pk=obj.pk).update(
                refused_keys=[], error="", error_at=None, rests_until=None
            )
        if words := effort_warning(obj.preset, obj.effort, obj.model):
            self.message_user(request, words, messages.WARNING)

    # --- What is shown ----------------------------------------------------------

    @admin.display(description=_("name"), ordering="name")
    def endpoint(self, row: ModelEndpoint) -> str:
        preset = PRESETS.get(row.preset)
        badge = render_badge("off", ".env") if row.environment else ""
        title = preset.title if preset else mask_url(row.base_url)
        return format_html('{} {}<div class="quiet">{}</div>', row.name, badge, title)

    @admin.display(description=_("model"), ordering="model")
    def model_name(self, row: ModelEndpoint) -> str:
        return row.model or "-"

    @admin.display(description=_("what it can do"))
    def abilities(self, row: ModelEndpoint) -> str:
        return format_html('<span class="quiet">{}</span>', list_abilities(row) or "-")

    @admin.display(description=_("state"))
    def state(self, row: ModelEndpoint) -> str:
        return describe_state(row)

    @admin.display(description=_("asked for"))
    def roles(self, row: Any) -> str:
        return ", ".join(row.asked_for) or "-"

    @admin.display(description=_("price"))
    def price(self, row: ModelEndpoint) -> str:
        return describe_price(row)

    @admin.display(description=_("base URL"))
    def address(self, row: ModelEndpoint) -> str:
        return mask_url(row.base_url) or "-"

    @admin.display(description=_("keys"))
    def key_count(self, row: ModelEndpoint) -> str:
        keys = stored_secrets(row, "keys")
        if keys is None:
            return gettext("cannot be read: sealed under another secret key")
        return ngettext("%d key", "%d keys", len(keys)) % len(keys)

    @admin.display(description=_("headers"))
    def header_names(self, row: ModelEndpoint) -> str:
        headers = stored_secrets(row, "headers")
        if headers is None:
            return gettext("cannot be read: sealed under another secret key")
        return ", ".join(f"{name}: {MASK}" for name in headers) or "-"

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        page: dict[str, Any] = {
            "presets": describe_presets(),
            "models_url": reverse("admin:agent_modelendpoint_models_of_new"),
        }
        if obj is None:
            return page
        return page | {
            "models_url": reverse("admin:agent_modelendpoint_models", args=(obj.pk,)),
            "state": describe_state(obj),
            "roles": find_roles().get(obj.pk, []),
            "learnt": list(list_learnt(obj)),
            "factor": describe_factor(obj),
            "is_left_over": is_left_over(obj),
            "unreadable": None in (stored_secrets(obj, "keys"), stored_secrets(obj, "headers")),
        }

    # --- Buttons ----------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("models/", view(self.models_view), name="agent_modelendpoint_models_of_new"),
            path(
                "<path:object_id>/models/",
                view(self.models_view),
                name="agent_modelendpoint_models",
            ),
            path("<path:object_id>/test/", view(self.test_view), name="agent_modelendpoint_test"),
            path(
                "<path:object_id>/forget/",
                view(self.forget_view),
                name="agent_modelendpoint_forget",
            ),
        ]
        return [*own, *super().get_urls()]

    def forget_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Forget what was learnt that the endpoint refuses: it is asked as any other again."""
        row = self.changeable(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        ModelEndpoint.objects.filter(pk=row.pk).update(learnt={}, token_factor=1.0)
        self.log_change(request, row, gettext("Forgot what was learnt."))
        self.message_user(
            request,
            gettext("Forgotten. What it still refuses will be learnt again."),
            messages.SUCCESS,
        )
        return redirect("admin:agent_modelendpoint_change", row.pk)

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask the stored endpoint, and show what came of it."""
        row = self.changeable(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        return self._results(request, [row])

    @admin.action(description=_("Test the selected endpoints"), permissions=["change"])
    def test_selected(self, request: HttpRequest, queryset: QuerySet[ModelEndpoint]) -> Any:
        rows = list(queryset[: MOST_TESTED + 1])
        if len(rows) > MOST_TESTED:
            words = gettext("At most %d endpoints are tested at once.") % MOST_TESTED
            self.message_user(request, words, messages.WARNING)
        return self._results(request, rows[:MOST_TESTED])

    def _results(self, request: HttpRequest, rows: list[ModelEndpoint]) -> HttpResponse:
        tried = [try_row(self, request, row) for row in rows]
        page = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Test"),
            "original": rows[0] if len(rows) == 1 else None,
            "subtitle": str(rows[0]) if len(rows) == 1 else None,
            "tried": tried,
        }
        return TemplateResponse(request, "admin/agent/modelendpoint/test.html", page)

    # --- After saving -----------------------------------------------------------

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._onward(request, obj) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        return self._onward(request, obj) or super().response_change(request, obj)

    def _onward(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse | None:
        """To the page that the pressed button names, by POST as what it does is no reading."""
        for button, page in (("_test", "test"), ("_fetch", "models")):
            if button in request.POST and self.has_change_permission(request, row):
                address = reverse(f"admin:agent_modelendpoint_{page}", args=(row.pk,))
                return HttpResponseRedirect(address, preserve_request=True)
        return None

    # --- Choosing a model from the provider's list ------------------------------

    def changeable(self, request: HttpRequest, object_id: str) -> ModelEndpoint:
        """The row, for a user who may change it. Raises PermissionDenied or Http404."""
        row: ModelEndpoint = get_object_or_404(ModelEndpoint, pk=parse_row_number(object_id))
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        return row

    def models_view(self, request: HttpRequest, object_id: str = "") -> HttpResponse:
        """The models, as JSON for the script of the form with what stands in its fields, or as a
        page to choose one for the stored row."""
        row = self.changeable(request, object_id) if object_id else None
        if row is None and not self.has_add_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if "application/json" in request.headers.get("accept", ""):
            return self._as_json(request, row)
        if row is None:
            raise Http404
        if chosen := request.POST.get("chosen", "")[:200]:
            return self._choose(request, row, chosen)
        return self._page(request, row)

    def _as_json(self, request: HttpRequest, row: ModelEndpoint | None) -> JsonResponse:
        try:
            found = load_models(request.user, self._entered(request, row))
        except ModelsUnknown as error:
            return JsonResponse({"problems": error.problems}, status=400)
        return JsonResponse({"models": [[one.name, one.window] for one in found]})

    def _entered(self, request: HttpRequest, row: ModelEndpoint | None) -> Endpoint:
        """The endpoint as the form has it now. Raises :class:`ModelsUnknown`."""
        if row is not None and row.environment:
            return row_endpoint(row)
        made = self.get_form(request, row, change=row is not None)
        form = made(request.POST, instance=row)
        with transaction.atomic():  # the form compares the row, locked, with what was seen
            form.full_clean()
        problems = {
            name: [str(line) for line in form.errors[name]]
            for name in _ADDRESS_FIELDS
            if name in form.errors
        }
        if problems:
            raise ModelsUnknown(problems)
        entered = form.cleaned_data
        return Endpoint(
            url=entered["base_url"],
            keys=tuple(entered["keys"] or ()),
            headers=entered["headers"] or {},
        )

    def _page(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse:
        words = request.POST.get("q", "")[:200].strip()
        found: list[ListedModel] = []
        problems: list[str] = []
        try:
            found = load_models(request.user, row_endpoint(row))
        except ModelsUnknown as error:
            problems = error.lines
        wanted = [m for m in found if all(w in m.name.lower() for w in words.lower().split())]
        page: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": gettext("Models"),
            "subtitle": str(row),
            "words": words,
            "problems": problems,
            "models": wanted[:SHOWN],
            "more": len(wanted) - SHOWN,
        }
        return TemplateResponse(request, "admin/agent/modelendpoint/models.html", page)

    def _choose(self, request: HttpRequest, row: ModelEndpoint, name: str) -> HttpResponse:
        if row.environment or not name.isprintable():
            raise PermissionDenied
        values = {field.name: getattr(row, field.name) for field in row._meta.concrete_fields}
        values["model"] = name
        if preset := PRESETS.get(row.preset):
            fill_in(values, preset, is_new=not row.model)
        with record_changes(request.user, row):  # type: ignore[arg-type] # signed in
            for field, value in values.items():
                setattr(row, field, value)
            row.learnt = {}
            row.save()
        self.log_change(request, row, gettext("Chose the model %s.") % name)
        self.message_user(request, gettext("The model is %s now.") % name, messages.SUCCESS)
        return redirect("admin:agent_modelendpoint_change", row.pk)
