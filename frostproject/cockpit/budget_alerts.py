"""Alerts of budgets that turn somebody away, or soon will: of all, and to owners of chats of those
of their chats."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from agent.domain.budgets import BudgetAction, BudgetTerms, SpendKind
from agent.models import BudgetStop
from agent.record.chats.subject_names import find_subjects
from agent.record.sums.budgets import BudgetUse, load_budget_uses, load_budgets
from frostproject.cockpit.alerts import BAD, NEARLY, NOTABLE, Alert, Viewer, link
from tools.text.visible import escape_invisible_chars

#: Budgets that are looked at, and of each the subjects that are told of.
SHOWN, SUBJECTS = 10, 3


def budget_alerts(viewer: Viewer) -> Iterator[Alert]:
    places: list[str] | None = None
    if not viewer.access.is_everything:
        places = viewer.own_places() if viewer.may("agent.view_chatsession") else []
    elif not viewer.may("agent.view_budget"):
        return
    for terms in _budgets(places):
        uses = load_budget_uses(terms, places)
        near = [use for use in uses if use.shortage or use.percent >= NEARLY]
        for use in near[:SUBJECTS]:
            yield _alert(use, is_own=places is not None)


def _budgets(places: list[str] | None) -> list[BudgetTerms]:
    """Those that stopped somebody first; where ``places`` are given, those of chats among them."""
    found = load_budgets()
    if places is not None:
        found = tuple(
            terms
            for terms in found
            if terms.kind == SpendKind.CHAT and (not terms.subject or terms.subject in places)
        )
    if len(found) > SHOWN:
        stopped = set(BudgetStop.objects.values_list("budget", flat=True).distinct())
        found = tuple(sorted(found, key=lambda terms: terms.pk not in stopped))
    return list(found[:SHOWN])


def _alert(use: BudgetUse, *, is_own: bool) -> Alert:
    terms = use.terms
    named = find_subjects(terms.kind, [use.subject])[use.subject] if use.subject else None
    words = {
        "name": escape_invisible_chars(terms.label),
        "whom": named.name if named else "",
        "percent": use.percent,
        "shortage": use.shortage.words if use.shortage else "",
    }
    is_replaced = terms.action is BudgetAction.CHEAPER
    url = link("agent_budget_change", terms.pk)
    if is_own:
        pk = named.pk if named else None
        url = "" if pk is None else link("agent_chatsession_change", pk)
    advice = _("It ends with its day or month. Who runs the bot can raise it.")
    if not is_own:
        advice = _("Raise it, or wait until its day or month is over.")
    level = BAD if use.shortage and not is_replaced else NOTABLE
    return Alert("budget", _text(use, is_replaced=is_replaced) % words, advice, url, level)


def _text(use: BudgetUse, *, is_replaced: bool) -> str:
    if use.shortage is None:
        return (
            _("The budget “%(name)s” of %(whom)s is used to %(percent)d %%.")
            if use.subject
            else _("The budget “%(name)s” is used to %(percent)d %%.")
        )
    if is_replaced:
        return (
            _("The budget “%(name)s” of %(whom)s: another endpoint answers. %(shortage)s.")
            if use.subject
            else _("The budget “%(name)s”: another endpoint answers. %(shortage)s.")
        )
    return (
        _("The budget “%(name)s” of %(whom)s is stopped: %(shortage)s.")
        if use.subject
        else _("The budget “%(name)s” is stopped: %(shortage)s.")
    )
