"""Budgets, with what is spent of them now."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.budgets import TOKENS, BudgetAction, SpendKind
from agent.models import Budget, BudgetNotice, BudgetStop, ModelEndpoint
from agent.record.chats.subject_names import name_subjects
from agent.record.sums.budgets import BudgetUse, budget_terms, knows_subject, load_budget_uses
from tools.admin.fields import choosing
from tools.admin.record_pages import Column, render_badge, with_less
from tools.admin.settings_page import SettingsAdmin, SettingsForm

#: Fields that say what is bounded: with others, owners are told anew.
BOUNDS = frozenset({"kind", "subject", "period", "limit", "unit"})


class BudgetForm(SettingsForm):
    """A budget, with what is wrong at its field."""

    class Meta:
        model = Budget
        fields = (
            *("name", "enabled", "kind", "subject", "period", "limit", "unit"),
            *("at_limit", "cheaper"),
        )
        widgets = {  # noqa: RUF012 - as below
            "subject": forms.TextInput(
                attrs=choosing(by="kind", takes="subject", **{"class": "vTextField"})
            )
        }
        labels = {"kind": _("Whose spending")}  # noqa: RUF012 - Django's own way to say it
        help_texts = {  # noqa: RUF012 - as above
            "subject": _(
                "Empty: each one has this budget for itself. Else one of them, written as the "
                "page “Spending” lists it."
            ),
            "unit": _("tokens, or the currency of an endpoint’s prices, such as CNY."),
        }

    def __init__(self, *arguments: object, **options: object) -> None:
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
class BudgetAdmin(SettingsAdmin):
    form = BudgetForm
    list_display = ("named", "enabled", "bounded", "most", "spent_now", "at_limit")
    list_select_related = ("cheaper",)
    readonly_fields = ("spent_now",)
    search_fields = ("name", "subject")
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("What it bounds"), {"fields": ("kind", "subject", "period", "limit", "unit")}),
        (_("When too little is left"), {"fields": ("at_limit", "cheaper")}),
        (_("Now"), {"fields": ("spent_now",)}),
    )

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What the environment says is changed there."""
        return super().has_change_permission(request, obj) and not _is_of_environment(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _is_of_environment(obj)

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

    columns: ClassVar = {
        # with a mark while it turns somebody away
        "named": Column(
            _("name"),
            lambda budget: format_html("{} {}", str(budget), _mark(_most_used(budget))),
            admin_order_field="name",
        ),
        "bounded": Column(
            _("Whose spending"),
            lambda budget: with_less(
                budget.get_kind_display(),
                name_subjects(budget.kind, [budget.subject])[budget.subject]
                or (gettext("each one for itself") if budget.kind != SpendKind.TOTAL else ""),
            ),
        ),
        "most": Column(
            _("limit"),
            lambda budget: (
                f"{(terms := budget_terms(budget)).in_words(terms.limit)} / "
                f"{budget.get_period_display()}"
            ),
        ),
        "spent_now": Column(_("spent now"), lambda budget: _spent(budget) if budget.pk else "-"),
    }


def _is_of_environment(budget: Model | None) -> bool:
    return isinstance(budget, Budget) and bool(budget.environment)


def _spent(budget: Budget) -> str:
    """Of those who have it each for themselves: by the one who was turned away, or who spent
    most."""
    use = _most_used(budget)
    whom = name_subjects(budget.kind, [use.subject])[use.subject] if use.subject else ""
    return format_html(
        '{} ({}) {} <div class="quiet">{}</div>',
        use.spent_words,
        f"{use.percent}%" if use.percent < 100 else render_badge("failed", f"{use.percent}%"),
        _mark(use),
        " · ".join(filter(None, [whom, *([use.shortage.words] if use.shortage else [])])),
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
