"""``Plugin``, the base of plugins that are classes, and ``@Tool``: a function or a method of a
plugin, offered to the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tools.contract import JsonSchema
from tools.errors import InvalidDeclaration
from tools.plugin_sdk.context import Context, ctx
from tools.plugin_sdk.schemas import GivenParameters, parameters_schema
from tools.schemas.signatures import function_name

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__plugin_tool__"


class Plugin:
    """A plugin. Its methods that carry :func:`tools.plugin_sdk.Tool` are its tools.

    ``plugin.py`` has one subclass of this, or a function ``create_plugin()`` that returns
    an instance. The methods below may be ``async def`` or ``def``.
    """

    @property
    def ctx(self) -> Context:
        return ctx

    @property
    def config(self) -> Mapping[str, Any]:
        """What the operator has set, by the manifest's ``config_schema``."""
        return ctx.config

    async def on_load(self) -> None:
        """Called once, before the first call. What it raises keeps the plugin from being loaded."""

    async def on_unload(self) -> None:
        """Called before the process ends in good order, within a few seconds."""

    async def on_config_update(self, config: Mapping[str, Any]) -> None:
        """Called when the operator has changed the configuration; ``self.config`` is new already.

        MaiBot's form with ``(scope, config_data, version)`` is called as well, with the
        scope "self".
        """


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a tool. ``schema`` None: taken from the function's signature."""

    name: str
    description: str = ""
    detailed_description: str = ""
    title: str = ""
    schema: JsonSchema | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    is_action: bool = False


def Tool(  # noqa: N802 - the name that plugins use
    name: str | Callable[..., Any] = "",
    description: str = "",
    brief_description: str = "",
    detailed_description: str = "",
    parameters: GivenParameters | None = None,
    *,
    title: str = "",
    **metadata: Any,
) -> Any:
    """Offer the function below to the model: ``@Tool``, or ``@Tool("name", description="…", …)``.

    Missing values come from the function: its name, its docstring, and its typed parameters. The
    model gets ``description``, or else ``brief_description``; ``detailed_description`` is for
    people.

    These entries of ``metadata`` are used: ``visibility`` ("visible", "deferred" or "hidden"),
    ``core_tool`` (True: shown to the model in full), ``timeout_ms`` and ``requires_approval``
    (True: each call needs an owner's approval), which are initial values that the operator may
    change; ``chat_scope`` ("all", "group" or "private") and ``allowed_session`` (a list of
    sessions, groups or ``platform:group``), which the operator can only narrow; and
    ``is_long_running``, which stays as it is.

    Raises :class:`InvalidDeclaration` for what cannot be offered.
    """
    if callable(name):
        return attach_declaration(name, Declaration(function_name(name)))
    _check(metadata)

    def declare(function: F) -> F:
        said = Declaration(
            name=function_name(function, name or None),
            description=description or brief_description,
            detailed_description=detailed_description,
            title=title,
            schema=None if parameters is None else parameters_schema(parameters),
            metadata=metadata,
        )
        return attach_declaration(function, said)

    return declare


def attach_declaration(function: F, declaration: Declaration) -> F:
    """``function`` itself, with ``declaration`` written on it."""
    setattr(function, _MARK, declaration)
    return function


def declaration_of(thing: Any) -> Declaration | None:
    """What was declared of ``thing``, a function or a bound method; None for everything else."""
    found = getattr(thing, _MARK, None) if callable(thing) and not isinstance(thing, type) else None
    return found if isinstance(found, Declaration) else None


_WORDS = {
    "visibility": {"visible", "deferred", "hidden"},
    "chat_scope": {"all", "group", "private"},
}


def _check(metadata: dict[str, Any]) -> None:
    for name, allowed in _WORDS.items():
        if (value := metadata.get(name)) is not None and value not in allowed:
            raise InvalidDeclaration(f"{name} is {value!r}; it can be {', '.join(sorted(allowed))}")
    timeout = metadata.get("timeout_ms")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int) or timeout <= 0
    ):
        raise InvalidDeclaration(f"timeout_ms is {timeout!r}; milliseconds above 0 are wanted")
