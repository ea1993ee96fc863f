"""Charts of the first page: each is a table of numbers, which a script draws where it can."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agent.domain.budgets import NANO, cost_words
from agent.models.activity import ANSWER_SECONDS
from frostproject.cockpit.figures import Period


@dataclass(frozen=True, slots=True)
class Cell:
    """One number: as it is drawn ("" for none), and as it is read."""

    value: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``columns`` are names of series with the variables of their colours."""

    title: str
    kind: str
    columns: list[tuple[str, str]]
    rows: list[tuple[str, list[Cell]]]

    @property
    def is_empty(self) -> bool:
        return all(cell.value in ("", "0") for _name, cells in self.rows for cell in cells)


def list_charts(hours: Sequence[Period], days: Sequence[Period]) -> list[Chart]:
    """Those of which there is anything to show; the first one always."""
    charts = [
        _counts(
            _("Messages of today, by hour"),
            [(_("received"), "--chart-1", "received"), (_("answered"), "--chart-2", "answered")],
            hours,
        ),
        _counts(
            _("Messages"),
            [
                (_("received"), "--chart-1", "received"),
                (_("to be answered"), "--chart-4", "addressed"),
                (_("answered"), "--chart-2", "answered"),
            ],
            days,
        ),
        _counts(
            _("Failures"),
            [
                (_("messages without their answer"), "--chart-3", "failed"),
                (_("failed runs"), "--chart-4", "failed_runs"),
                (_("not sent"), "--chart-5", "unsent"),
                (_("unknown whether sent"), "--chart-1", "unknown"),
            ],
            days,
        ),
        _times(days),
        _tokens(days),
        *_costs(days),
    ]
    return [chart for place, chart in enumerate(charts) if not place or not chart.is_empty]


def _counts(title: str, series: Sequence[tuple[str, str, str]], periods: Sequence[Period]) -> Chart:
    rows = []
    for one in periods:
        counts = [one.counts.get(name, 0) for _label, _colour, name in series]
        rows.append((_short(one.name), [Cell(str(count), f"{count:,}") for count in counts]))
    return Chart(title, "bar", [(label, colour) for label, colour, _name in series], rows)


def _times(days: Sequence[Period]) -> Chart:
    """Approximate, for they come from columns."""
    rows = [
        (
            _short(day.name),
            [Cell(_seconds(day.p50), day.p50_words), Cell(_seconds(day.p95), day.p95_words)],
        )
        for day in days
    ]
    columns = [
        (_("half of the answers within"), "--chart-2"),
        (_("95 percent of the answers within"), "--chart-3"),
    ]
    return Chart(_("Seconds to the answer (approximate)"), "line", columns, rows)


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{min(seconds, float(ANSWER_SECONDS[-1])):.1f}"


def _tokens(days: Sequence[Period]) -> Chart:
    rows = [(_short(day.name), [Cell(str(day.tokens), f"{day.tokens:,}")]) for day in days]
    return Chart(_("Tokens"), "bar", [(_("tokens"), "--chart-1")], rows)


def _costs(days: Sequence[Period]) -> list[Chart]:
    """One for each currency: they cannot be added."""
    currencies = sorted({one for day in days for one, cost in day.costs.items() if one and cost})
    return [
        Chart(
            _("Cost (%s)") % currency,
            "bar",
            [(currency, "--chart-2")],
            [
                (
                    _short(day.name),
                    [
                        Cell(
                            f"{day.costs.get(currency, 0) / NANO:g}",
                            cost_words(day.costs.get(currency, 0), currency),
                        )
                    ],
                )
                for day in days
            ],
        )
        for currency in currencies
    ]


def _short(name: str) -> str:
    """A day without its year."""
    return name[5:] if len(name) == len("2026-01-31") else name
