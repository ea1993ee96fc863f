"""How model endpoints fare, and trying one by hand: who may ask at which address, how often, and
what came of it.

A model endpoint may stand in the own network, as Ollama does. But what is asked there comes from
this machine, and what is answered is shown: so only superusers, and the settings, name addresses
that are not public.
"""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _, gettext_lazy

from agent.domain import errors
from agent.domain.budgets import NANO, cost_words
from agent.domain.endpoint import Ability, Endpoint, ModelRole
from agent.llm.client.model_list import ListedModel, fetch_models, find_alike
from agent.llm.endpoints.endpoint_pool import environment_endpoints
from agent.llm.errors import error_words, refusals
from agent.llm.probing.probe import (
    TOOL_NAME,
    ProbedCall,
    ProbeReport,
    describe_probe,
    probe_endpoint,
    question_words,
)
from agent.models import EndpointStatus, ModelEndpoint
from agent.pages.error_words import explain_error
from agent.record.runs.steps import NewStep
from agent.record.runs.test_runs import record_test_run
from agent.record.settings.endpoints import (
    ABILITY_COLUMNS,
    LearntRefusal,
    RefusedKey,
    StatusChange,
    load_endpoint_table,
    save_learnt,
    save_refused_key,
    save_status,
    save_window,
    to_endpoint,
)
from agent.runtime import serving
from tools import findings, token_bucket
from tools.admin.record_pages import clamp_text, format_moment, render_badge
from tools.admin.settings_page import HistoryAdmin
from tools.fetch.allow_list import AllowList
from tools.fetch.request import DestinationRefused, DestinationResolver, FetchError
from tools.secrets import encryption, hosts
from tools.text.error_words import explain_network_error
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
        if told.raw:  # the text on record, folded
            shown = escape_invisible_chars(told.raw[:500], keep="\n")
            folded = "<details><summary>{}</summary>{}</details>"
            parts.append(format_html(folded, _("As recorded"), shown))
    return mark_safe(" ".join(parts))  # noqa: S308 - made by format_html alone


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
    words = [
        "?" if price is None else cost_words(int(price * NANO), row.currency, is_price=True)
        for price in (row.price_input, row.price_output)
    ]
    return "-" if set(words) == {"?"} else " / ".join(words)


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
    words = _("It counts %d %% more tokens than are estimated; estimates obey that.")
    if row.token_factor < 1:
        words = _("It counts %d %% fewer tokens than are estimated; estimates obey that.")
    beyond = abs(row.token_factor - 1)
    return "" if beyond < FACTOR_NOTED else words % round(beyond * 100)


LOOK_UP_SECONDS = 10.0


def find_address_problem(user: object, url: str) -> str:
    """Why ``user`` may not have models asked at ``url``, as a translated sentence; "" where they
    may. The name is looked up for those who are no superusers."""
    host = hosts.parse_host(url)
    named = [hosts.parse_host(one.url) for one in environment_endpoints().values()]
    if getattr(user, "is_superuser", False) or (host is not None and host in named):
        return ""
    try:
        async_to_sync(_require_public)(urlsplit(url).hostname or "")
    except DestinationRefused as error:
        words = _(
            "This address is not public: only a superuser may enter it, or FETCH_ALLOW in .env "
            "lists it. (%s)"
        )
        return words % error
    except (FetchError, TimeoutError) as error:
        return _("The host of this address cannot be found: is it written right? (%s)") % (
            error or type(error).__name__
        )
    return ""


async def _require_public(host: str) -> None:
    allow = AllowList.parse(settings.FETCH_ALLOW, "model")
    async with asyncio.timeout(LOOK_UP_SECONDS):
        await DestinationResolver(allow).require_all(host)


#: Fifteen at once after a rest, and one more every four seconds.
RATE = token_bucket.RefillRate(15, 4.0)
#: Tests under way at once.
MOST_TESTS = 4
#: No row's: what a test of an endpoint that is not stored counts as.
NOT_STORED = 0
ADDRESS_FIELDS = ("base_url", "keys", "headers")


class HandThrottle:
    """Of one process; for the threads of its pages."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, token_bucket.TokenBucket] = {}
        self._under_way: set[int] = set()

    def refuse(self, what: str) -> str:
        """Why ``what`` is not done now, as a translated sentence; "" where it is, which counts."""
        with self._lock:
            is_let = self._buckets.setdefault(what, token_bucket.TokenBucket(RATE)).take_available()
        return "" if is_let else _("This was asked for too often: wait a few seconds.")

    @contextlib.contextmanager
    def testing(self, pk: int) -> Iterator[str]:
        """Around a test of the endpoint ``pk``: why it may not begin, or ""."""
        with self._lock:
            is_free = pk not in self._under_way and len(self._under_way) < MOST_TESTS
            if is_free:
                self._under_way.add(pk)
        words = "" if is_free else _("A test is under way already: wait for its end.")
        try:
            yield words or self.refuse("test")
        finally:
            if is_free:
                with self._lock:
                    self._under_way.discard(pk)

    def forget(self) -> None:
        """As after a rest."""
        with self._lock:
            self._buckets.clear()


throttle = HandThrottle()


class ModelsUnknown(Exception):  # noqa: N818 - it says what is wrong
    """The list could not be had; by the field that is to blame, sentences for the person."""

    def __init__(self, problems: dict[str, list[str]]) -> None:
        super().__init__(str(problems))
        self.problems = problems

    @property
    def lines(self) -> list[str]:
        return [line for lines in self.problems.values() for line in lines]


def row_endpoint(row: ModelEndpoint) -> Endpoint:
    """``row`` as the agent asks it. Raises :class:`ModelsUnknown` where its keys cannot be read."""
    try:
        return to_endpoint(row, environment_endpoints().get(row.environment))
    except encryption.DecryptionError as error:
        words = _("The keys or headers cannot be read any more: enter them again.")
        raise ModelsUnknown({"keys": [words]}) from error


def entered_endpoint(form: Any) -> Endpoint:
    """The endpoint whose address and keys stand in the form of an endpoint. Raises
    :class:`ModelsUnknown` where they are wrong."""
    with transaction.atomic():  # the form compares the row, locked, with what was seen
        form.full_clean()
    problems = {
        name: [str(line) for line in form.errors[name]]
        for name in ADDRESS_FIELDS
        if name in form.errors
    }
    if problems:
        raise ModelsUnknown(problems)
    entered = form.cleaned_data
    keys, headers = tuple(entered["keys"] or ()), entered["headers"] or {}
    return Endpoint(url=entered["base_url"], keys=keys, headers=headers)


def load_models(user: object, endpoint: Endpoint) -> list[ListedModel]:
    """The models of ``endpoint``, asked for by ``user``. Raises :class:`ModelsUnknown`."""
    if words := find_address_problem(user, endpoint.url):
        raise ModelsUnknown({"base_url": [words]})
    if words := throttle.refuse("models"):
        raise ModelsUnknown({"model": [words]})
    try:
        found = async_to_sync(fetch_models)(endpoint)
    except errors.LLMError as error:
        told = error_words.explain_fault(error_words.name_fault(error))
        raise ModelsUnknown({"model": [f"{told.sentence} {told.advice}", str(error)]}) from error
    if not found:
        raise ModelsUnknown({"model": [_("The list of models is empty: type the model's name.")]})
    return found


def try_row(page: HistoryAdmin, request: HttpRequest, row: ModelEndpoint) -> dict[str, Any]:
    """Ask the stored ``row`` on behalf of ``page``. What came of it is on record, and as the page
    of results shows it: ``lines``, the ``outcome`` in words with its badge, and where it was asked
    the ``report`` with its ``calls``, what was ``learnt``, models that are ``alike``, the key of
    its run."""
    started_at, outcome = timezone.now(), (_("failed"), "failed")
    try:
        report = ask_row(request.user, row)
    except ModelsUnknown as error:
        lines = [findings.fail_finding(line) for line in error.lines]
        return {"row": row, "lines": lines, "outcome": outcome}
    run_pk = record_probe(row, report, request.user.get_username(), started_at)
    row.refresh_from_db()
    if not report.fault:
        outcome = (_("works"), "succeeded") if report.works else (_("works in part"), "waiting")
    found = {
        "row": row,
        "lines": describe_report(report),
        "outcome": outcome,
        "report": report,
        "calls": [_describe_call(call, report.endpoint.prices.currency) for call in report.calls],
        "learnt": list(list_learnt(row)),
        "alike": list_alike(request.user, report),
        "run_pk": run_pk,
    }
    page.log_change(request, row, _("Tested: %(outcome)s") % {"outcome": outcome[0]})
    return found


def _describe_call(call: ProbedCall, currency: str) -> dict[str, Any]:
    """A row of the table."""
    cost = getattr(call.response, "cost_nano", None)
    words = "-" if cost is None else cost_words(cost, currency)
    asked = {"what": question_words(call.what), "seconds": call.seconds}
    return {**asked, "response": call.response, "cost": words}


def ask_row(user: object, row: ModelEndpoint) -> ProbeReport:
    """What came of asking the endpoint of ``row``, stored or not, on behalf of ``user``. Raises
    :class:`ModelsUnknown` where it may not be asked now."""
    endpoint = row_endpoint(row)
    if words := find_address_problem(user, endpoint.url):
        raise ModelsUnknown({"base_url": [words]})
    with throttle.testing(row.pk or NOT_STORED) as hindrance:
        if hindrance:
            raise ModelsUnknown({"": [hindrance]})
        # on the loop that serves, where the calls are counted as any others, if one does
        if serving_now := serving.get_serving():
            return serving_now.run(lambda _registry: probe_endpoint(endpoint))
        return async_to_sync(probe_endpoint)(endpoint)


def describe_report(report: ProbeReport) -> list[findings.Finding]:
    """What ``report`` shows; of a connection that failed, how it did, which the endpoint's own
    words tell."""
    lines = describe_probe(report)
    told = (
        explain_network_error(report.words) if report.fault == refusals.RefusalKind.DOWN else None
    )
    if told is None:
        return lines
    return [
        replace(line, text=told.sentence, advice=told.advice)
        if line.level is findings.FindingLevel.FAIL
        else line
        for line in lines
    ]


def list_alike(user: object, report: ProbeReport) -> list[str]:
    """Models of the endpoint that may be meant by one that it does not know."""
    if report.fault != refusals.RefusalKind.UNKNOWN_MODEL:
        return []
    try:
        return find_alike(report.endpoint.model, load_models(user, report.endpoint))
    except ModelsUnknown:
        return []


def record_probe(row: ModelEndpoint, report: ProbeReport, by: str, started_at: datetime) -> int:
    """Put ``report`` of a test that the user ``by`` made on record; the key of its run, 0 where no
    chat model was asked."""
    _keep(row, report)
    asked = [call for call in report.calls if call.messages]
    if report.failed is not None and report.failed.messages:
        asked.append(report.failed)
    steps = [_step(number, call) for number, call in enumerate(asked, start=1)]
    if not steps:
        return 0
    return record_test_run(steps, by=by, started_at=started_at, error=report.words)


def _step(number: int, call: ProbedCall) -> NewStep:
    tools = [TOOL_NAME] if call.has_tool else []
    messages, latency_ms = list(call.messages), round(call.seconds * 1000)
    if call.error is not None:
        error, sent = str(call.error), call.error.sent
        return NewStep(
            0, number, messages, tools, None, error=error, latency_ms=latency_ms, sent=sent
        )
    answer = call.response
    assert answer is not None  # noqa: S101 - what did not fail was answered
    return NewStep(
        0,
        number,
        messages,
        tools,
        answer.recorded_message,
        finish_reason=answer.finish_reason,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        latency_ms=latency_ms,
        sent=answer.sent,
        cached_tokens=answer.cached_tokens,
        reasoning_tokens=answer.reasoning_tokens,
        cost_nano=answer.cost_nano,
        rest=answer.rest,
    )


def _keep(row: ModelEndpoint, report: ProbeReport) -> None:
    """Put on record what was learnt, and how the endpoint fares."""
    for kind, words in report.learnt.items():
        save_learnt(LearntRefusal(row.pk, kind, words))
    if report.window:
        save_window(row.pk, report.window)
    for index, words in report.refused_keys.items():
        save_refused_key(RefusedKey(row.pk, index, words))
    if report.fault:
        save_status(StatusChange(row.pk, error=report.words or report.fault))
    elif report.answers:
        save_status(StatusChange(row.pk, answered_at=timezone.now()))
