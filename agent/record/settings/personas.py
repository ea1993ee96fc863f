"""The rows of personas and agents, as the transactions of one process see them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import Max, Q

from agent.domain.endpoint import ModelRole
from agent.domain.persona import Example, PersonaKind, PersonaSettings, environment_persona
from agent.domain.types import ChatAddress
from agent.models import EndpointChoice, Persona as PersonaRow, PersonaChoice

#: What a row says where it is not empty, and the environment otherwise.
OVERRIDES = (
    *("prompt", "model_calls", "context_messages", "context_chars", "run_seconds"),
    *("mention", "quote", "vision_mode"),
)
ChoiceKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class PersonaTable:
    """The personas that are switched on, and where they answer."""

    default: PersonaSettings | None = None
    """None: the default persona is what the environment says."""
    by_pk: Mapping[int, PersonaSettings] = field(default_factory=dict)
    chosen: Mapping[ChoiceKey, int] = field(default_factory=dict)
    """By account, kind of chat, peer and person; "" for any."""
    agents: tuple[PersonaSettings, ...] = ()
    usual_endpoints: Mapping[ModelRole, tuple[int, ...]] = field(default_factory=dict)
    """Those of the default persona, which all others ask too."""

    def find(self, chat: ChatAddress | None, sender_id: str) -> PersonaSettings:
        """Who answers ``sender_id`` in ``chat``."""
        if chat is not None and self.chosen:
            for key in list_choice_keys(chat, sender_id):
                if (found := self.by_pk.get(self.chosen.get(key, 0))) is not None:
                    return found
        return self.default or environment_persona()


def list_choice_keys(chat: ChatAddress, sender_id: str) -> Iterator[ChoiceKey]:
    """The choices that count for ``sender_id`` in ``chat``, the most particular first: the person
    counts before the chat, and a named account before any."""
    for user in dict.fromkeys((sender_id, "")):
        for kind, peer in ((chat.kind, chat.peer_id), (chat.kind, ""), ("", "")):
            for account in (chat.account, ""):
                yield account, kind, peer, user


def load_persona_table() -> PersonaTable:
    """Every persona that is switched on, in three queries."""
    return replace(load_personas(), chosen=load_chosen())


def load_personas() -> PersonaTable:
    """The same without the places where they answer."""
    endpoints = _load_choices()
    default, by_pk, agents = None, {}, []
    usual: Mapping[ModelRole, tuple[int, ...]] = {}
    for row in PersonaRow.objects.filter(Q(enabled=True) | Q(is_default=True)).order_by("pk"):
        if row.is_default:
            usual = endpoints.get(row.pk, {})
        if not row.enabled:
            continue
        if row.kind == PersonaKind.AGENT:
            agents.append(build_persona(row, endpoints.get(row.pk, {})))
        elif not row.is_default:
            by_pk[row.pk] = build_persona(row, endpoints.get(row.pk, {}))
        elif (built := build_persona(row, {})) != _bare(built):
            default = built
    return PersonaTable(default, by_pk, {}, tuple(agents), usual)


def load_chosen() -> dict[ChoiceKey, int]:
    """The keys of the personas by where they answer."""
    columns = ("account", "chat_kind", "peer_id", "user_id", "persona_id")
    rows = PersonaChoice.objects.values_list(*columns)
    return {(account, kind, peer, user): pk for account, kind, peer, user, pk in rows}


def load_persona(row: PersonaRow) -> PersonaSettings:
    """``row`` as runs have it that begin now."""
    return build_persona(row, {} if row.is_default else _load_choices().get(row.pk, {}))


def find_answering_row(chat: ChatAddress) -> PersonaRow | None:
    """The persona that answers in ``chat`` those for whom nobody is chosen; the default one where
    no other is."""
    choices = PersonaChoice.objects.select_related("persona").filter(
        account__in=(chat.account, ""),
        peer_id__in=(chat.peer_id, ""),
        user_id="",
        persona__enabled=True,
        persona__kind=PersonaKind.PERSONA,
    )
    found = {(one.account, one.chat_kind, one.peer_id, ""): one.persona for one in choices}
    known = (found[key] for key in list_choice_keys(chat, "") if key in found)
    row: PersonaRow | None = next(known, None)
    return row or PersonaRow.objects.filter(is_default=True).first()


def load_longest_contexts(asked: Sequence[None]) -> list[int]:
    """The most messages that any persona is shown, also one that is switched off; 0 where none says
    so itself."""
    most = PersonaRow.objects.aggregate(most=Max("context_messages"))["most"]
    return [most or 0 for _ in asked]


def build_persona(
    row: PersonaRow, endpoints: Mapping[ModelRole, tuple[int, ...]]
) -> PersonaSettings:
    """``row`` as runs use it; the endpoints of the default persona are those of all others too, and
    not its own (:mod:`agent.record.settings.endpoints`)."""
    said = {name: getattr(row, name) for name in OVERRIDES}
    own = {name: value for name, value in said.items() if value not in (None, "")}
    return replace(
        environment_persona(),
        **own,
        pk=row.pk,
        name=row.name,
        description=row.description,
        as_tool=row.as_tool,
        examples=tuple(Example(*one) for one in row.examples),
        tool_choice=row.tool_choice,
        tools=frozenset(row.tools.split()),
        language=row.language,
        endpoints=endpoints,
    )


def _bare(persona: PersonaSettings) -> PersonaSettings:
    """What the environment says, as the row of ``persona``."""
    return replace(environment_persona(), pk=persona.pk)


def _load_choices() -> dict[int, dict[ModelRole, tuple[int, ...]]]:
    chosen: dict[int, dict[ModelRole, tuple[int, ...]]] = {}
    rows = EndpointChoice.objects.order_by("position", "pk")
    for persona, role, endpoint in rows.values_list("persona_id", "role", "endpoint_id"):
        roles = chosen.setdefault(persona, {})
        roles[ModelRole(role)] = (*roles.get(ModelRole(role), ()), endpoint)
    return chosen
