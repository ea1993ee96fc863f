"""Model endpoints: setting them up, seeing how they fare, forgetting what was learnt of them."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
)
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.admin.endpoints.form import (
    EndpointForm,
    describe_presets,
    effort_warning,
    fill_in,
)
from agent.llm.client.model_list import ListedModel
from agent.llm.providers.presets import PRESETS
from agent.models import EndpointStatus, ModelEndpoint
from agent.pages.endpoints import (
    ModelsUnknown,
    describe_factor,
    describe_price,
    describe_state,
    entered_endpoint,
    find_roles,
    is_left_over,
    list_abilities,
    list_learnt,
    load_models,
    row_endpoint,
    try_row,
)
from tools.admin.record_pages import Column, author_of, by_post, render_badge, require
from tools.admin.settings_page import SettingsAdmin, mask_values, read_sealed
from tools.models.row_history import record_changes
from tools.secrets.masked import mask_url

_ABILITIES = ("can_chat", "can_tools", "can_see", "can_think", "can_transcribe", "can_embed")
#: Models on the page that works without a script.
SHOWN = 100
#: Endpoints that the action of the list tests.
MOST_TESTED = 5


@admin.register(ModelEndpoint)
class EndpointAdmin(SettingsAdmin):
    """An endpoint costs money and is sent what people say: operators set up those that are public,
    superusers any (:mod:`agent.pages.endpoints`)."""

    addresses = (("models_of_new", "models/"),)
    form = EndpointForm
    show_full_result_count = True
    list_display = ("endpoint", "model_name", "abilities", "state", "roles", "price", "enabled")
    list_display_links = ("endpoint",)
    list_select_related = ("status",)
    search_fields = ("name", "model")
    actions = ("test_selected",)
    change_form_template = "admin/agent/modelendpoint/change_form.html"
    buttons = ("test", "forget", "models")
    facts = ("created_at", "updated_at")
    unseen: ClassVar = {
        "base_url": "address",
        "keys": "key_count",
        "headers": "header_names",
        "filled": "",
    }
    first_fields = (*("preset", "base_url", "keys", "model", "name", "enabled", "filled"),)
    more_fields: ClassVar = (
        (_("What the model can do"), (_ABILITIES,)),
        (
            _("Thinking and parameters"),
            ("thinking", "effort", "temperature", "top_p", "max_tokens", "extra_body"),
        ),
        (
            _("Prices"),
            (
                *("price_input", "price_cached", "price_output", "price_reasoning"),
                "currency",
            ),
        ),
        (_("Window and tools"), ("window", "max_tools", "text_calls")),
        (
            _("Streaming, limits and headers"),
            (
                *("streamed", "piece_seconds", "timeout_seconds", "max_concurrent"),
                *("calls_per_minute", "headers", "position"),
            ),
        ),
        (_("History"), facts),
    )

    class Media:
        js: ClassVar = ["agent/endpoint.js"]
        css: ClassVar = {"all": ["agent/endpoint.css"]}

    # --- Who may do what --------------------------------------------------------

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What the environment names would be there again at once."""
        return super().has_delete_permission(request, obj) and not (
            isinstance(obj, ModelEndpoint) and bool(obj.environment) and not is_left_over(obj)
        )

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """No deletion of many at once: it would not ask each row."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        roles = find_roles()
        for row in rows:
            row.asked_for = roles.get(row.pk, [])

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

    columns: ClassVar = {
        "endpoint": Column(_("name"), lambda row: _named(row), admin_order_field="name"),
        "model_name": Column(_("model"), lambda row: row.model or "-", admin_order_field="model"),
        "abilities": Column(
            _("what it can do"),
            lambda row: format_html('<span class="quiet">{}</span>', list_abilities(row) or "-"),
        ),
        "state": Column(_("state"), describe_state),
        "roles": Column(_("asked for"), lambda row: ", ".join(row.asked_for) or "-"),
        "price": Column(_("price"), describe_price),
        "address": Column(_("base URL"), lambda row: mask_url(row.base_url) or "-"),
        "key_count": Column(
            _("keys"),
            lambda row: (
                mask_values(None)
                if (keys := read_sealed(row, "keys")) is None
                else ngettext("%d key", "%d keys", len(keys)) % len(keys)
            ),
        ),
        "header_names": Column(
            _("headers"), lambda row: mask_values(read_sealed(row, "headers"), "{}: {}")
        ),
    }

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
            "unreadable": None in (read_sealed(obj, "keys"), read_sealed(obj, "headers")),
        }

    # --- Buttons ----------------------------------------------------------------

    def forget_view(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse:
        """Forget what was learnt that the endpoint refuses: it is asked as any other again."""
        ModelEndpoint.objects.filter(pk=row.pk).update(learnt={}, token_factor=1.0)
        words = gettext("Forgotten. What it still refuses will be learnt again.")
        return self.tell_done(request, row, words, gettext("Forgot what was learnt."))

    def test_view(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse:
        """Ask the stored endpoint, and show what came of it."""
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
        row = rows[0] if len(rows) == 1 else None
        return self.show_page(request, "test", gettext("Test"), row, tried=tried)

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

    @by_post
    def models_of_new_view(self, request: HttpRequest) -> HttpResponse:
        """The models, as JSON for the script of the form of a new endpoint."""
        require(self.has_add_permission(request))
        if not _wants_json(request):
            raise Http404
        return self._as_json(request, None)

    def models_view(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse:
        """The models, as JSON for the script of the form with what stands in its fields, or as a
        page to choose one for the stored row."""
        if _wants_json(request):
            return self._as_json(request, row)
        if chosen := request.POST.get("chosen", "")[:200]:
            return self._choose(request, row, chosen)
        return self._page(request, row)

    def _as_json(self, request: HttpRequest, row: ModelEndpoint | None) -> JsonResponse:
        try:
            if row is not None and row.environment:
                asked = row_endpoint(row)
            else:  # as the form has it now
                made = self.get_form(request, row, change=row is not None)
                asked = entered_endpoint(made(request.POST, instance=row))
            found = load_models(request.user, asked)
        except ModelsUnknown as error:
            return JsonResponse({"problems": error.problems}, status=400)
        return JsonResponse({"models": [[one.name, one.window] for one in found]})

    def _page(self, request: HttpRequest, row: ModelEndpoint) -> HttpResponse:
        words = request.POST.get("q", "")[:200].strip()
        found: list[ListedModel] = []
        problems: list[str] = []
        try:
            found = load_models(request.user, row_endpoint(row))
        except ModelsUnknown as error:
            problems = error.lines
        wanted = [m for m in found if all(w in m.name.lower() for w in words.lower().split())]
        page: dict[str, Any] = {"words": words, "problems": problems}
        page |= {"models": wanted[:SHOWN], "more": len(wanted) - SHOWN}
        return self.show_page(request, "models", gettext("Models"), row, **page)

    def _choose(self, request: HttpRequest, row: ModelEndpoint, name: str) -> HttpResponse:
        require(not row.environment and name.isprintable())
        values = {field.name: getattr(row, field.name) for field in row._meta.concrete_fields}
        values["model"] = name
        if preset := PRESETS.get(row.preset):
            fill_in(values, preset, is_new=not row.model)
        with record_changes(author_of(request), row):
            for field, value in values.items():
                setattr(row, field, value)
            row.learnt = {}
            row.save()
        logged = gettext("Chose the model %s.") % name
        return self.tell_done(request, row, gettext("The model is %s now.") % name, logged)


def _named(row: ModelEndpoint) -> str:
    preset = PRESETS.get(row.preset)
    badge = render_badge("off", ".env") if row.environment else ""
    title = preset.title if preset else mask_url(row.base_url)
    return format_html('{} {}<div class="quiet">{}</div>', row.name, badge, title)


def _wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("accept", "")
