"""What ``doctor`` finds out by asking models: every endpoint that may be asked, rows and those that
the environment names.

Each is tried as the admin's *Test* tries it (:mod:`agent.llm.probing.probe`).
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.db import DatabaseError, connection
from django.urls import reverse
from django.utils.translation import gettext as _

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.domain.model_roles import ModelRole
from agent.llm.client.model_list import fetch_models, find_alike
from agent.llm.endpoints.endpoint_table import EndpointTable, endpoint_key
from agent.llm.endpoints.environment_endpoints import environment_table
from agent.llm.errors.fault_words import CERTIFICATE, NO_CHAT, TOO_SLOW, WEB_PAGE
from agent.llm.errors.refusals import RefusalKind
from agent.llm.probing.probe import ProbeReport, probe_endpoint
from agent.llm.probing.probe_words import describe_probe
from agent.record.settings.endpoints import load_endpoint_table
from tools.findings import (
    Finding,
    FindingLevel,
    fail_finding,
    note_finding,
    ok_finding,
    warn_finding,
)

MODEL_SECONDS = 60.0
"""For one question."""
EXCERPT = 200
_VARIABLES = {
    RefusalKind.WRONG_KEY: "API_KEY",
    RefusalKind.UNKNOWN_MODEL: "MODEL_NAME",
    RefusalKind.WRONG_ADDRESS: "ENDPOINT",
    RefusalKind.DOWN: "ENDPOINT",
    RefusalKind.OTHER: "MODEL_NAME",
    CERTIFICATE: "ENDPOINT",
    NO_CHAT: "ENDPOINT",
    WEB_PAGE: "ENDPOINT",
    TOO_SLOW: "ENDPOINT",
}
"""Which variable is to be looked at, where the environment names the endpoint."""


def check_models(seconds: float = MODEL_SECONDS) -> Iterator[Finding]:
    """Every endpoint that may be asked; that none of those for chats works is what is wrong."""
    table = load_table()
    endpoints = list_endpoints(table)
    chat = {endpoint_key(one) for one in table.resolve(ModelRole.CHAT)}
    for fault in table.faults.values():
        yield warn_finding(_("A model endpoint is left out: %s") % _(fault), _("See the admin."))
    if not chat:
        yield note_finding(
            _("No model is set: the built-in demo model answers."),
            _("Set one in the admin under “Model endpoints”, or UPSTREAM_ENDPOINT in .env."),
            page=reverse("admin:agent_modelendpoint_add"),
        )
    reports = [asyncio.run(probe_endpoint(one, question_seconds=seconds)) for one in endpoints]
    is_answered = any(
        not report.fault for report in reports if endpoint_key(report.endpoint) in chat
    )
    for report in reports:
        is_needed = endpoint_key(report.endpoint) in chat and not is_answered
        for finding in judge_report(report):
            is_fail = finding.level is FindingLevel.FAIL
            is_minor = is_fail and not is_needed
            yield replace(finding, level=FindingLevel.WARN) if is_minor else finding
    if chat and not is_answered:
        yield fail_finding(
            _("No endpoint answers chats."), _("Mend one of them, or add another in the admin.")
        )


def load_table() -> EndpointTable:
    """The table of the rows; of the environment alone where there is no database, or an older
    one."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite" and not Path(name).exists():
        return environment_table()
    try:
        return load_endpoint_table()
    except DatabaseError:
        return environment_table()


def list_endpoints(table: EndpointTable) -> list[Endpoint]:
    """All that may be asked, each address and model once."""
    found: dict[tuple[str, str, frozenset[str]], Endpoint] = {}
    for one in (*table.rows.values(), *table.environment.values()):
        found.setdefault((one.url, one.model, one.abilities), one)
    return list(found.values())


def judge_report(report: ProbeReport) -> Iterator[Finding]:
    """The findings about one endpoint; none holds a key."""
    endpoint, shown = report.endpoint, name_endpoint(report.endpoint)
    if endpoint.environment == "CODER":
        shown = _("Coder subagent: %s") % shown
    page = reverse("admin:agent_modelendpoint_change", args=(endpoint.pk,)) if endpoint.pk else ""
    seconds = sum(call.seconds for call in report.calls)
    if report.works and report.calls:
        words = _("The model %(model)s answered within %(seconds).1f s.")
        yield ok_finding(words % {"model": shown, "seconds": seconds})
    for found in describe_probe(report):
        told = replace(found, text=f"{shown}: {found.text}", page=page)
        if found.level is FindingLevel.FAIL:
            said = " ".join(report.words.split())[:EXCERPT]
            yield replace(told, advice=_advice(report, found.advice), said=said)
        elif found.level is FindingLevel.WARN:
            yield told


def name_endpoint(endpoint: Endpoint) -> str:
    """The endpoint for people, without what may hold a key."""
    place = f"{endpoint.model or '?'} @ {strip_url_secrets(endpoint.url)}"
    return f"{endpoint.name} ({place})" if endpoint.name and not endpoint.environment else place


def _advice(report: ProbeReport, advice: str) -> str:
    """``advice`` with the variable to look at, or the names that may be meant."""
    parts = [advice]
    variable = _VARIABLES.get(report.fault)
    if variable and report.endpoint.environment:
        prefix = report.endpoint.environment
        shared = ("API_KEY", "ENDPOINT") if prefix not in ("UPSTREAM", "CODER") else ()
        name = f"UPSTREAM_{variable}" if variable in shared else f"{prefix}_{variable}"
        name = "MODEL_NAME" if name == "UPSTREAM_MODEL_NAME" else name
        parts.append(_("In .env it is %s.") % name)
    if report.fault == RefusalKind.UNKNOWN_MODEL and (alike := _alike(report.endpoint)):
        parts.append(_("There are: %s") % ", ".join(alike))
    return " ".join(parts)


def _alike(endpoint: Endpoint) -> Sequence[str]:
    try:
        return find_alike(endpoint.model, asyncio.run(fetch_models(endpoint)))
    except LLMError:
        return ()


def strip_url_secrets(url: str) -> str:
    """``url`` without user, password and query, any of which may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
