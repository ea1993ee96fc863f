"""``@Action``: what plugins had before ``@Tool``, turned into the declaration of a tool."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.plugin_sdk.declarations import Declaration, F, attach_declaration
from tools.plugin_sdk.schemas import texts_schema
from tools.plugin_sdk.types import ActivationType, ChatMode
from tools.schemas.signatures import function_name


def Action(  # noqa: N802 - the name that plugins use
    name: str,
    description: str = "",
    activation_type: ActivationType | str = ActivationType.ALWAYS,
    activation_keywords: Sequence[str] = (),
    activation_probability: float = 1.0,
    chat_mode: ChatMode | str = ChatMode.NORMAL,
    action_parameters: Mapping[str, Any] | None = None,
    action_require: Sequence[str] = (),
    associated_types: Sequence[str] = (),
    parallel_action: bool = False,
    action_prompt: str = "",
    **metadata: Any,
) -> Callable[[F], F]:
    """Offer the function below to the model. Deprecated: new plugins use
    :func:`tools.plugin_sdk.Tool`.

    Every parameter is an optional text. The description that the model gets includes when to use
    the action; the activation type is only recorded. The function is called with ``stream_id``,
    ``chat_id``, ``reasoning`` and ``action_data`` (the arguments) in addition to its arguments.
    """
    warnings.warn(f"@Action({name!r}) is deprecated: use @Tool", DeprecationWarning, stacklevel=2)
    origin = {
        "activation_type": str(activation_type),
        "activation_keywords": list(activation_keywords),
        "activation_probability": activation_probability,
        "chat_mode": str(chat_mode),
        "parallel_action": parallel_action,
    }
    legacy = {
        "legacy_action": True,
        "legacy_component_type": "ACTION",
        "invoke_method": "plugin.invoke_action",
    }

    def declare(function: F) -> F:
        said = Declaration(
            name=function_name(function, name),
            description=long_description(
                description, action_require, associated_types, action_prompt
            ),
            schema=texts_schema(action_parameters or {}),
            metadata={**metadata, **legacy, **origin},
            is_action=True,
        )
        return attach_declaration(function, said)

    return declare


def long_description(
    description: str, require: Sequence[str], associated_types: Sequence[str], prompt: str
) -> str:
    """One text for the model of all that an Action said of itself."""
    parts = [description.strip()]
    if require:
        parts.append("\n".join(["使用场景：", *(f"- {condition}" for condition in require)]))
    if associated_types:
        parts.append(f"涉及的消息类型：{'、'.join(map(str, associated_types))}")
    return "\n".join(part for part in [*parts, prompt.strip()] if part)
