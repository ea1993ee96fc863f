"""Model endpoints on record: read as the agent uses them, and what it learns of them written
down."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.endpoint import Ability, Endpoint, ModelRole, TokenPrices
from agent.llm.endpoints.endpoint_pool import EndpointTable, environment_endpoints
from agent.llm.errors.refusals import RefusalKind
from agent.models import EndpointChoice, EndpointStatus, ModelEndpoint
from tools.live_rows import ConfigVersion, LiveKind
from tools.secrets.encryption import DecryptionError

#: Characters of what an endpoint said that are kept.
MOST_WORDS = 2_000
ABILITY_COLUMNS = {
    "can_chat": Ability.CHAT,
    "can_tools": Ability.TOOLS,
    "can_see": Ability.SEE,
    "can_think": Ability.THINK,
    "can_transcribe": Ability.TRANSCRIBE,
    "can_embed": Ability.EMBED,
}
SAMPLING = ("temperature", "top_p", "max_tokens")
UNREADABLE = gettext_noop(
    "Its keys or headers cannot be read, because SECRET_KEY has changed: enter them again."
)


# --- Reading ------------------------------------------------------------------------


def load_endpoint_table() -> EndpointTable:
    """The table as the rows have it now. Where there are none, what the environment names."""
    return load_endpoint_rows(_load_defaults())


def load_endpoint_rows(defaults: Mapping[ModelRole, tuple[int, ...]]) -> EndpointTable:
    """The same where it is known which endpoints the default persona asks."""
    named = environment_endpoints()
    rows: dict[int, Endpoint] = {}
    faults: dict[int, str] = {}
    for row in ModelEndpoint.objects.order_by("position", "pk"):
        if row.environment and row.environment not in named:
            continue  # the variable is gone
        if not (row.environment or row.model):
            continue  # saved to fetch the models, and none was chosen yet
        if not row.enabled:
            named.pop(row.environment, None)
            continue
        try:
            endpoint = to_endpoint(row, named.get(row.environment))
        except DecryptionError:
            faults[row.pk] = UNREADABLE
            continue
        rows[row.pk] = endpoint
        if row.environment:
            named[row.environment] = endpoint
    return EndpointTable(rows, named, defaults, faults)


def to_endpoint(row: ModelEndpoint, named: Endpoint | None = None) -> Endpoint:
    """``row`` as the agent uses it; address, keys and model of one that mirrors the environment
    are those of ``named``.

    Raises :class:`tools.secrets.encryption.DecryptionError`.
    """
    from_row = Endpoint(
        url=row.base_url,
        keys=() if named else tuple(row.keys),
        model=row.model,
        pk=row.pk,
        name=row.name,
        timeout_seconds=row.timeout_seconds or environment_timeout(),
        preset=row.preset,
        abilities=frozenset(a for column, a in ABILITY_COLUMNS.items() if getattr(row, column)),
        headers=row.headers,
        parameters=_parameters(row),
        thinking=row.thinking,
        effort=row.effort,
        is_streamed=row.streamed,
        piece_seconds=row.piece_seconds,
        max_concurrent=row.max_concurrent or 0,
        calls_per_minute=row.calls_per_minute or 0,
        prices=_prices(row),
        window=row.window or 0,
        max_tools=row.max_tools or 0,
        text_calls=row.text_calls,
        refuses=frozenset(row.learnt).union(() if row.can_tools else (RefusalKind.NO_TOOLS,)),
        token_factor=row.token_factor,
        environment=row.environment,
    )
    if named is None:
        return from_row
    return replace(from_row, url=named.url, keys=named.keys, model=named.model)


def environment_timeout() -> float:
    """Seconds for one call where the row says nothing."""
    return float(settings.LLM_TIMEOUT)


def _parameters(row: ModelEndpoint) -> dict[str, Any]:
    sampling = {name: value for name in SAMPLING if (value := getattr(row, name)) is not None}
    return sampling | (row.extra_body if isinstance(row.extra_body, dict) else {})


def _prices(row: ModelEndpoint) -> TokenPrices:
    return TokenPrices(
        _price(row.price_input),
        _price(row.price_cached),
        _price(row.price_output),
        _price(row.price_reasoning),
        row.currency,
    )


def _price(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _load_defaults() -> dict[ModelRole, tuple[int, ...]]:
    chosen: dict[ModelRole, tuple[int, ...]] = {}
    rows = EndpointChoice.objects.filter(persona__is_default=True).order_by("position", "pk")
    for role, endpoint_pk in rows.values_list("role", "endpoint_id"):
        if role in ModelRole.values:
            chosen[ModelRole(role)] = (*chosen.get(ModelRole(role), ()), endpoint_pk)
    return chosen


# --- The environment ----------------------------------------------------------------


def mirror_environment(asked: Sequence[None] = (None,)) -> Sequence[None]:
    """Have a row for each endpoint that the environment names, as it names it now. Keys stay in the
    environment."""
    rows = list(ModelEndpoint.objects.order_by("-pk"))
    mirrors = {row.environment: row for row in rows}
    taken = {row.name for row in rows}
    for name, endpoint in environment_endpoints().items():
        row = mirrors.get(name)
        if row is None:
            _add_mirror(name, endpoint, taken)
        elif (row.base_url, row.model) != (endpoint.url, endpoint.model):
            row.base_url, row.model = endpoint.url, endpoint.model
            row.save(update_fields=["base_url", "model", "updated_at"])
    return asked


def _add_mirror(name: str, endpoint: Endpoint, taken: set[str]) -> None:
    """``taken`` are the names that there were when the row was looked for: the mirror that another
    process has added since is no reason for a second one of another name."""
    labels = [f".env: {name}", *(f".env: {name} ({number})" for number in range(2, 100))]
    abilities = {column: a in endpoint.abilities for column, a in ABILITY_COLUMNS.items()}
    row = ModelEndpoint(
        name=next(label for label in labels if label not in taken),
        environment=name,
        position=0 if name == "UPSTREAM" else 50,
        base_url=endpoint.url,
        model=endpoint.model,
        **abilities,
    )
    # Another process may begin at the same moment, and add it first.
    ModelEndpoint.objects.bulk_create([row], ignore_conflicts=True)


# --- What is learnt -----------------------------------------------------------------


class LearntRefusal(NamedTuple):
    """That an endpoint refuses ``kind`` (:class:`agent.llm.errors.refusals.RefusalKind`), in its
    ``words``."""

    endpoint_pk: int
    kind: str
    words: str


class StatusChange(NamedTuple):
    """What is new of an endpoint. None: as it was; ``rests_until`` is always as it is now."""

    endpoint_pk: int
    rests_until: datetime | None = None
    answered_at: datetime | None = None
    error: str | None = None


class RefusedKey(NamedTuple):
    """That the key at ``key_index``, from 0, was refused, in the endpoint's ``words``."""

    endpoint_pk: int
    key_index: int
    words: str


def save_learnt(learnt: LearntRefusal) -> None:
    """Keep what an endpoint refuses; all processes learn it. Nothing if its row is gone."""
    row = ModelEndpoint.objects.filter(pk=learnt.endpoint_pk).first()
    if row is not None and learnt.kind not in row.learnt:
        said = {"at": timezone.now().isoformat(), "words": learnt.words[:MOST_WORDS]}
        known = {**row.learnt, learnt.kind: said}
        ModelEndpoint._base_manager.filter(pk=row.pk).update(learnt=known)
        ConfigVersion.bump(LiveKind.LEARNT)


def save_window(pk: int, tokens: int) -> None:
    """Keep, by the key of a row, how many tokens the model's window has, unless its operator says
    so; all processes learn it."""
    row = ModelEndpoint.objects.filter(pk=pk, window=None).first()
    if row is not None:
        ModelEndpoint._base_manager.filter(pk=pk).update(window=tokens)
        ConfigVersion.bump(LiveKind.LEARNT)


def save_factor(pk: int, factor: float) -> None:
    """Keep, by the key of a row, how many tokens are reported for each that is estimated. Other
    processes learn it with the next change of a row."""
    ModelEndpoint._base_manager.filter(pk=pk).update(token_factor=factor)


def save_status(change: StatusChange) -> None:
    """Keep how an endpoint fares; nothing if its row is gone."""
    news: dict[str, Any] = {"rests_until": change.rests_until}
    if change.answered_at is not None:
        news["answered_at"] = change.answered_at
    if change.error is not None:
        news |= {"error": change.error[:MOST_WORDS], "error_at": timezone.now()}
    _update_status(change.endpoint_pk, news)


def save_refused_key(refused: RefusedKey) -> None:
    """Keep that a key is set aside; nothing if the row of the endpoint is gone."""
    status = EndpointStatus.objects.filter(pk=refused.endpoint_pk).first()
    indexes = set(status.refused_keys if status else ()) | {refused.key_index}
    news = {"refused_keys": sorted(indexes), "error": refused.words[:MOST_WORDS]}
    _update_status(refused.endpoint_pk, {**news, "error_at": timezone.now()})


def _update_status(endpoint_pk: int, news: Mapping[str, object]) -> None:
    if ModelEndpoint.objects.filter(pk=endpoint_pk).exists():
        EndpointStatus.objects.update_or_create(pk=endpoint_pk, defaults=dict(news))
