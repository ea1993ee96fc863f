"""How model endpoints fare and what they are asked for, as the list and their pages show it."""

from collections import defaultdict
from collections.abc import Iterable

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _, gettext_lazy

from agent.domain.budgets import NANO, cost_words
from agent.domain.endpoint import Ability, ModelRole
from agent.llm.endpoints.endpoint_pool import environment_endpoints
from agent.models import EndpointStatus, ModelEndpoint
from agent.pages.error_words import explain_error
from agent.record.settings.endpoints import ABILITY_COLUMNS, load_endpoint_table
from tools.admin.record_pages import clamp_text, format_moment, render_badge
from tools.text.readable import escape_invisible_chars

#: A token_factor that is nearer to 1 is not worth a word.
FACTOR_NOTED = 0.1
_LEARNT = {
    "no_tools": gettext_lazy("It takes no tools: none are offered to it."),
    "no_tools_while_thinking": gettext_lazy("It takes no tools while it thinks."),
    "no_pictures": gettext_lazy("It takes no pictures: they are described to it in words."),
    "no_system": gettext_lazy("It takes no system message: that is sent as a user message."),
    "late_system": gettext_lazy("It takes a system message only as the first one."),
    "no_consecutive_user": gettext_lazy("It takes no two user messages in a row: they are joined."),
    "no_null_content": gettext_lazy("It takes no message without text."),
    "no_array_content": gettext_lazy("It takes texts only, no lists of parts."),
    "only_streamed": gettext_lazy("It gives only streamed answers."),
    "no_thinking_unless_streamed": gettext_lazy("It thinks only when its answers are streamed."),
    "max_completion_tokens": gettext_lazy("It wants max_completion_tokens instead of max_tokens."),
    "no_temperature": gettext_lazy("It takes no temperature."),
    "no_thinking_switch": gettext_lazy("Its thinking cannot be switched."),
    "no_extras": gettext_lazy("It takes no keys that the standard does not know."),
    "missing_reasoning": gettext_lazy("It wants back what it thought."),
}


def is_left_over(row: ModelEndpoint) -> bool:
    """Whether ``row`` mirrors what the environment named once, and names no more."""
    return bool(row.environment) and row.environment not in environment_endpoints()


def find_roles() -> dict[int, list[str]]:
    """What each row is asked for, by its key, with its place where others are asked before it."""
    table = load_endpoint_table()
    found: dict[int, list[str]] = defaultdict(list)
    for role in ModelRole:
        for turn, endpoint in enumerate(table.resolve(role), start=1):
            if endpoint.pk is not None:
                words = str(role.label) if turn == 1 else f"{role.label} ({turn})"
                found[endpoint.pk].append(words)
    return found


def list_abilities(row: ModelEndpoint) -> str:
    return ", ".join(
        str(Ability(ability).label)
        for column, ability in ABILITY_COLUMNS.items()
        if getattr(row, column)
    )


def describe_state(row: ModelEndpoint) -> str:
    """Badges and the last error, as HTML."""
    if is_left_over(row):
        return render_badge("off", _("no longer in .env"))
    if not row.enabled:
        return render_badge("off", _("switched off"))
    if not (row.environment or row.model):
        return render_badge("waiting", _("no model chosen yet"))
    status = getattr(row, "status", None)
    if status is None:
        return render_badge("off", _("not asked yet"))
    parts = [_badge(status)]
    if status.refused_keys:
        numbers = ", ".join(str(number + 1) for number in status.refused_keys)
        parts.append(render_badge("failed", _("refused keys: %s") % numbers))
    if has_failed(status) and status.error:
        moment = format_moment(status.error_at) if status.error_at else ""
        told = explain_error(status.error)
        parts.append(format_html("{}{}", clamp_text(told.sentence[:500]), moment))
        parts.append(describe_raw_error(told.raw))
    return mark_safe(" ".join(parts))  # noqa: S308 - made by format_html alone


def describe_raw_error(raw: str) -> str:
    """The text on record, folded, as HTML; "" for none."""
    if not raw:
        return ""
    shown = escape_invisible_chars(raw[:500], keep="\n")
    return format_html("<details><summary>{}</summary>{}</details>", _("As recorded"), shown)


def _badge(status: EndpointStatus) -> str:
    if status.rests_until and status.rests_until > timezone.now():
        until = timezone.localtime(status.rests_until).strftime("%H:%M:%S")
        return render_badge("waiting", _("rests until %s") % until)
    if has_failed(status):
        return render_badge("failed", _("failed"))
    if status.answered_at is None:
        return render_badge("off", _("not asked yet"))
    badge = render_badge("delivered", _("answers"))
    return format_html("{} {}", badge, format_moment(status.answered_at))


def has_failed(status: EndpointStatus) -> bool:
    """Whether what it was asked last came to nothing."""
    if status.error_at is None:
        return False
    return status.answered_at is None or status.error_at > status.answered_at


def describe_price(row: ModelEndpoint) -> str:
    """Input and output per million tokens, in one line; "-" where no price is known."""
    if row.price_input is None and row.price_output is None:
        return "-"
    prices = (row.price_input, row.price_output)
    return " / ".join(
        "?" if price is None else cost_words(int(price * NANO), row.currency) for price in prices
    )


def list_learnt(row: ModelEndpoint) -> Iterable[tuple[str, str, str]]:
    """What was learnt that the endpoint refuses: the words for it, when, and what it said."""
    for kind, said in row.learnt.items():
        about = said if isinstance(said, dict) else {}
        yield (
            str(_LEARNT.get(kind, kind)),
            str(about.get("at", ""))[:16],
            str(about.get("words", "")),
        )


def describe_factor(row: ModelEndpoint) -> str:
    """What the measured ``token_factor`` means, in words; "" where it says nothing."""
    percent = round(abs(row.token_factor - 1) * 100)
    if abs(row.token_factor - 1) < FACTOR_NOTED:
        return ""
    if row.token_factor > 1:
        return _("It counts %d %% more tokens than are estimated; estimates obey that.") % percent
    return _("It counts %d %% fewer tokens than are estimated; estimates obey that.") % percent
