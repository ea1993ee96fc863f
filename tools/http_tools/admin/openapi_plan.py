"""What an import would make, and the making: rows of HTTP tools, and the secrets that they name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext

from tools.fetch.allow_list import AllowList
from tools.fetch.errors import FetchError
from tools.fetch.fetcher import run_with_fetcher
from tools.fetch.request import FetchRequest
from tools.http_tools.models import FROM_ROWS
from tools.http_tools.openapi.document import MAX_BYTES, DocumentError, read_document
from tools.http_tools.openapi.drafts import ToolDraft, draft_tool
from tools.http_tools.openapi.operations import DocumentOutline, make_unique, propose_tool_name
from tools.http_tools.openapi.security import SecretWanted
from tools.http_tools.settings import GRACE_SECONDS, PROVIDER
from tools.http_tools.validation import ValidationContext, check_hosts, check_http_tool
from tools.models import HttpTool, Secret, ToolConfig
from tools.models.choices import ApprovalMode
from tools.secrets.hosts import SecretHosts

FETCH_SECONDS = 30.0
REPLACE = "replace"
#: Methods that replace or delete what is there.
CHANGING = frozenset({HttpTool.Method.PUT, HttpTool.Method.PATCH, HttpTool.Method.DELETE})


@dataclass(frozen=True, slots=True)
class PlannedTool:
    """One selected operation. ``row`` is what would be saved; ``problem`` is the reason why it
    cannot be."""

    draft: ToolDraft
    row: HttpTool
    problem: str
    is_there: bool
    is_made: bool
    """Whether it is made: it can be, and no row of its name is to be left as it is."""

    @property
    def asks_owner(self) -> bool:
        """Whether its calls wait for an owner from the start: a new one that may change or delete
        what is there."""
        return not self.is_there and self.row.method in CHANGING


@dataclass(slots=True)
class ImportResult:
    """What an import did."""

    made: list[HttpTool] = field(default_factory=list)
    replaced: list[HttpTool] = field(default_factory=list)
    secrets: list[Secret] = field(default_factory=list)


def read_source(given: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a valid ``SourceForm``. Raises :class:`DocumentError`."""
    if url := given["url"]:
        return read_document(_fetched(url))
    if file := given["file"]:
        return read_document(file.read(MAX_BYTES + 1))
    return read_document(str(given["text"]))


def plan_tools(
    document: dict[str, Any], contents: DocumentOutline, choice: Mapping[str, Any]
) -> list[PlannedTool]:
    """A plan for each operation that ``choice``, a valid ``ChoiceForm``, names, in the order of the
    document."""
    names = propose_tool_names(contents, choice["name_prefix"])
    existing = {row.name: row for row in HttpTool.objects.filter(name__in=names.values())}
    server, prefix = choice["server"], choice["name_prefix"]
    planned = []
    for operation in contents.operations:
        if operation.key in choice["operations"]:
            name = names[operation.key]
            drawn = draft_tool(document, operation, name=name, server=server, prefix=prefix)
            planned.append(_plan(drawn, existing.get(name), choice))
    return planned


def propose_tool_names(contents: DocumentOutline, prefix: str) -> dict[str, str]:
    """A name for each operation, by its key. It does not depend on the selection, so that a second
    import finds the rows of the first one."""
    described = ToolConfig.objects.values_list("name", "declaration__provider_type")
    taken = {name for name, provider_type in described if provider_type not in FROM_ROWS}
    names: dict[str, str] = {}
    for operation in contents.operations:
        names[operation.key] = make_unique(propose_tool_name(operation, prefix), taken)
        taken.add(names[operation.key])
    return names


def find_wanted_secrets(planned: list[PlannedTool]) -> tuple[list[SecretWanted], list[str]]:
    """The secrets that the tools to be made name: those that are missing or can no longer be read,
    and the others."""
    wanted = {
        secret.name: secret for plan in planned if plan.is_made for secret in plan.draft.secrets
    }
    there = {secret.name for secret in Secret.objects.filter(name__in=wanted) if secret.is_readable}
    return [secret for name, secret in wanted.items() if name not in there], sorted(there)


def find_wanted_hosts(planned: list[PlannedTool], name: str) -> SecretHosts:
    """Where the tools to be made would send the secret of that name."""
    return SecretHosts.of_urls(
        plan.row.url
        for plan in planned
        if plan.is_made and name in {one.name for one in plan.draft.secrets}
    )


def check_secret_hosts(planned: list[PlannedTool], names: Iterable[str]) -> list[str]:
    """Why tools to be made would not work with the secrets of these names as they are: a translated
    line each."""
    hosts = {name: known for name, known in Secret.known_hosts().items() if name in names}
    found = [
        line
        for plan in planned
        if plan.is_made
        for line in check_hosts(plan.row.to_settings(), hosts)
    ]
    return list(dict.fromkeys(found))


@transaction.atomic
def save_plan(planned: list[PlannedTool], secrets: Mapping[str, str]) -> ImportResult:
    """Save the rows that are to be made, and ``secrets`` by name, each for the hosts of these rows
    alone."""
    outcome = ImportResult()
    for name, value in secrets.items():
        secret = Secret.objects.filter(name=name).first() or Secret(name=name)
        secret.value, secret.hosts = value, str(find_wanted_hosts(planned, name))
        secret.save()
        outcome.secrets.append(secret)
    for plan in planned:
        if plan.is_made:
            plan.row.save()
            if plan.asks_owner:
                _ask_owner(plan.row)
            (outcome.replaced if plan.is_there else outcome.made).append(plan.row)
    return outcome


def _plan(drawn: ToolDraft, existing: HttpTool | None, choice: Mapping[str, Any]) -> PlannedTool:
    row = existing or HttpTool(enabled=False)
    for name, value in {**drawn.values, "enabled": choice["enabled"] or row.enabled}.items():
        setattr(row, name, value)
    if not (problem := drawn.problem):  # secrets may still be missing
        context = ValidationContext(allow=AllowList.parse(settings.FETCH_ALLOW, "tools"))
        found = check_http_tool(row.to_settings(), context)
        problem = " ".join(line for lines in found.values() for line in lines)
        if len(row.url) > 2000:
            problem = gettext("The URL is too long.")
    is_left = existing is not None and choice["existing"] != REPLACE
    return PlannedTool(
        drawn, row, problem, existing is not None, is_made=not problem and not is_left
    )


def _ask_owner(row: HttpTool) -> None:
    """Settings for a tool that has none yet, as its first start would make them, but for the
    approval."""
    settings_of_tool = {
        "provider_name": PROVIDER,
        "declaration": {"provider_type": PROVIDER},
        "timeout_seconds": row.timeout_seconds + GRACE_SECONDS,
        "requires_approval": ApprovalMode.ALWAYS,
    }
    ToolConfig.objects.get_or_create(name=row.name, defaults=settings_of_tool)


def _fetched(url: str) -> bytes:
    request = FetchRequest(url, max_bytes=MAX_BYTES, seconds=FETCH_SECONDS)
    try:
        return run_with_fetcher("tools", lambda fetcher: fetcher.download(request)).body
    except FetchError as error:
        words = gettext("The document could not be fetched: %(error)s")
        raise DocumentError(words % {"error": error}) from error
