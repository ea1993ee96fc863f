"""Budgets, with what is spent of them now, and the sums that they bound."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.domain.budgets import TOKENS, BudgetAction, SpendKind, cost_words
from agent.models import Budget, BudgetNotice, BudgetStop, ModelEndpoint, SpendSum
from agent.record.chats.subject_names import name_subjects
from agent.record.sums.budgets import BudgetUse, budget_terms, knows_subject, load_budget_uses
from tools.admin.changes import HistoryAdmin
from tools.admin.record_pages import RecordAdmin, RecordChangeList, clamp_text, render_badge

if TYPE_CHECKING:
    _Form = forms.ModelForm[Budget]
else:
    _Form = forms.ModelForm

#: Fields that say what is bounded: with others, owners are told anew.
BOUNDS = frozenset({"kind", "subject", "period", "limit", "unit"})


class BudgetForm(_Form):
    """A budget, with what is wrong at its field."""

    class Meta:
        model = Budget
        fields = (
            *("name", "enabled", "kind", "subject", "period", "limit", "unit"),
            *("at_limit", "cheaper"),
        )
        labels = {"kind": _("Whose spending")}  # noqa: RUF012 - Django's own way to say it
        help_texts = {  # noqa: RUF012 - as above
            "subject": _(
                "Empty: each one has this budget for itself. Else one of them, written as the "
                "page “Spending” lists it."
            ),
            "unit": _("tokens, or the currency of an endpoint’s prices, such as CNY."),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.instance.pk is None and not has_prices(self.initial.get("unit", "CNY")):
            self.initial["unit"] = TOKENS

    def clean_subject(self) -> str:
        return str(self.cleaned_data["subject"]).strip()

    def clean_unit(self) -> str:
        """A currency in which nothing has a price would bound nothing."""
        unit = str(self.cleaned_data["unit"])
        if unit == TOKENS or has_prices(unit):
            return unit
        raise forms.ValidationError(
            gettext(
                "No endpoint has prices in %(unit)s, so nothing would be counted. Write the "
                "currency of an endpoint’s prices, or tokens."
            )
            % {"unit": unit}
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("at_limit") == BudgetAction.CHEAPER and not cleaned.get("cheaper"):
            self.add_error("cheaper", gettext("Choose the endpoint that answers then."))
        if cleaned.get("kind") == SpendKind.TOTAL and cleaned.get("subject"):
            self.add_error("subject", gettext("A budget on everything is on nobody in particular."))
        return cleaned


def has_prices(currency: str) -> bool:
    """Whether an endpoint has a price in ``currency``."""
    is_priced = Q(price_input__gt=0) | Q(price_output__gt=0)
    return ModelEndpoint.objects.filter(is_priced, currency=currency).exists()


@admin.register(Budget)
class BudgetAdmin(HistoryAdmin):
    form = BudgetForm
    list_display = ("named", "enabled", "bounded", "most", "spent_now", "at_limit")
    list_select_related = ("cheaper",)
    readonly_fields = ("spent_now",)
    search_fields = ("name", "subject")
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("What it bounds"), {"fields": ("kind", "subject", "period", "limit", "unit")}),
        (_("When too little is left"), {"fields": ("at_limit", "cheaper")}),
        (_("Now"), {"fields": ("spent_now",)}),
    )

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and BOUNDS & set(form.changed_data):
            BudgetNotice.objects.filter(budget=obj).delete()
            BudgetStop.objects.filter(budget=obj).delete()
        if obj.subject and not knows_subject(obj.kind, obj.subject):
            self.message_user(
                request,
                gettext("Nothing was ever spent on “%(subject)s”: is it spelt as in the sums?")
                % {"subject": obj.subject},
                messages.WARNING,
            )

    @admin.display(description=_("Whose spending"))
    def bounded(self, budget: Budget) -> str:
        whom = name_subjects(budget.kind, [budget.subject])[budget.subject]
        if not whom and budget.kind != SpendKind.TOTAL:
            whom = gettext("each one for itself")
        return format_html('{} <div class="quiet">{}</div>', budget.get_kind_display(), whom)

    @admin.display(description=_("limit"))
    def most(self, budget: Budget) -> str:
        terms = budget_terms(budget)
        return f"{terms.in_words(terms.limit)} / {budget.get_period_display()}"

    @admin.display(description=_("name"), ordering="name")
    def named(self, budget: Budget) -> str:
        """With a mark while it turns somebody away."""
        return format_html("{} {}", str(budget), _mark(_most_used(budget)))

    @admin.display(description=_("spent now"))
    def spent_now(self, budget: Budget) -> str:
        """Of those who have it each for themselves: by the one who was turned away, or who spent
        most."""
        if not budget.pk:
            return "-"
        use = _most_used(budget)
        whom = name_subjects(budget.kind, [use.subject])[use.subject] if use.subject else ""
        beside = [use.shortage.words] if use.shortage else []
        return format_html(
            '{} ({}) {} <div class="quiet">{}</div>',
            use.spent_words,
            f"{use.percent}%" if use.percent < 100 else render_badge("failed", f"{use.percent}%"),
            _mark(use),
            " · ".join(filter(None, [whom, *beside])),
        )


def _most_used(budget: Budget) -> BudgetUse:
    """The use of those first who are turned away, then of who spent most; for a row that is not
    enabled nobody is turned away. Asked for once for each row of a page."""
    if not hasattr(budget, "most_used"):
        terms = budget_terms(budget)
        uses = load_budget_uses(terms)
        budget.most_used = uses[0] if uses else BudgetUse(terms, terms.subject, 0)  # type: ignore[attr-defined]
    found: BudgetUse = budget.most_used  # type: ignore[attr-defined]
    return found


def _mark(use: BudgetUse) -> str:
    return render_badge("failed", use.stop_words) if use.stop_words else ""


class SpendList(RecordChangeList):
    """Sums with the names of those they are of, asked for once a page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = rows = list(self.result_list)
        for kind in {row.kind for row in rows}:
            own = [row for row in rows if row.kind == kind and row.subject]
            names = name_subjects(kind, {row.subject for row in own})
            for row in own:
                row.subject_name = names[row.subject]


@admin.register(SpendSum)
class SpendSumAdmin(RecordAdmin):
    list_display = ("day", "what", "whom", "calls", "tokens", "cost")
    list_filter = ("kind",)
    free_lookups = RecordAdmin.free_lookups | {"day", "subject"}
    search_help_text: ClassVar = _(
        "A day such as 2026-01-31, or a subject as the list shows it, exactly."
    )

    fields = ("day", "what", "whom", "calls", "tokens", "cost")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SpendList

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(day=term)
        yield Q(kind__in=SpendKind.values, subject=term)

    @admin.display(description=_("kind"))
    def what(self, row: SpendSum) -> str:
        return str(row.get_kind_display())

    @admin.display(description=_("subject"))
    def whom(self, row: SpendSum) -> str:
        if not row.subject:
            return "-"
        page = reverse("admin:agent_spendsum_changelist")
        name = getattr(row, "subject_name", row.subject)
        written = format_html('<div class="quiet">{}</div>', row.subject)
        return format_html(
            '<a href="{}?{}">{}</a> {}',
            *(page, urlencode({"q": row.subject}), clamp_text(name)),
            written if name != row.subject else "",
        )

    @admin.display(description=_("tokens"))
    def tokens(self, row: SpendSum) -> str:
        return format_html(
            '{} + {} <div class="quiet">{}</div>',
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            gettext("%(cached)s cached, %(thoughts)s reasoning")
            % {"cached": f"{row.cached_tokens:,}", "thoughts": f"{row.reasoning_tokens:,}"},
        )

    @admin.display(description=_("cost"))
    def cost(self, row: SpendSum) -> str:
        return cost_words(row.cost_nano, row.currency) if row.currency else "-"
