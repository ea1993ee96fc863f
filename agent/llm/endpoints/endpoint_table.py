"""Which endpoints are asked for what, in which order. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.domain.endpoint import Ability, Endpoint
from agent.domain.model_roles import CHAT_ROLES, ROLE_ENVIRONMENTS, ModelRole

#: What an endpoint must be able to do for a role.
NEEDS = {
    ModelRole.VISION: Ability.SEE,
    ModelRole.TRANSCRIPTION: Ability.TRANSCRIBE,
    ModelRole.EMBEDDING: Ability.EMBED,
}
#: What the environment names for these is asked for their role alone, unless it is chosen.
APART = frozenset({"CODER"})

#: As the last key of a choice: then those that are asked without one.
AS_USUAL = 0


@dataclass(frozen=True, slots=True)
class EndpointTable:
    """All endpoints that may be asked. It is replaced, never changed."""

    rows: Mapping[int, Endpoint] = field(default_factory=dict)
    """Enabled rows by key, those that mirror the environment included, in the order in which they
    are asked."""
    environment: Mapping[str, Endpoint] = field(default_factory=dict)
    """What the environment names, by what it is called there, unless its row is disabled."""
    defaults: Mapping[ModelRole, tuple[int, ...]] = field(default_factory=dict)
    """The lists of the default persona."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Why rows are left out that should be here."""

    def resolve(self, role: ModelRole, choice: Sequence[int] = ()) -> tuple[Endpoint, ...]:
        """The endpoints for ``role``, the first to ask first; ``choice`` are the keys that a
        persona names for it; :data:`AS_USUAL` may end them. What is no more, or disabled, is left
        out."""
        if choice and choice[-1] == AS_USUAL:
            usual = self.resolve(role)
            first = tuple(self.rows[pk] for pk in choice if pk in self.rows)
            return first + tuple(one for one in usual if one not in first)
        for keys in (choice, self.defaults.get(role, ())):
            if chosen := tuple(self.rows[pk] for pk in keys if pk in self.rows):
                return chosen
        named = self.environment.get(ROLE_ENVIRONMENTS.get(role, ""))
        own = (named,) if named is not None else ()
        if role in CHAT_ROLES:
            able = self.resolve(ModelRole.CHAT)
        else:
            need = NEEDS.get(role, Ability.CHAT)
            able = tuple(
                one
                for one in self.rows.values()
                if need in one.abilities and one.environment not in APART
            )
        return own + tuple(one for one in able if one != named)

    def find(self, key: int | str) -> Endpoint | None:
        """The endpoint of a row, or what the environment names where it has no row."""
        return self.rows.get(key) if isinstance(key, int) else self.environment.get(key)


def endpoint_key(endpoint: Endpoint) -> int | str:
    """What stays the same of ``endpoint`` when it is changed."""
    return endpoint.pk if endpoint.pk is not None else endpoint.environment
