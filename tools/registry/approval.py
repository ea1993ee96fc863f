"""Whether a call needs an owner's approval: by the row, or else by the tool's declaration."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

from tools.contract import ToolSpec
from tools.error_boundary import capture_error
from tools.errors import InvalidDeclaration
from tools.models.choices import ApprovalMode
from tools.registry.settings import ToolSettings

logger = logging.getLogger(__name__)

ApprovalRule = bool | Callable[[dict[str, Any]], bool]
"""Every call, none, or those for whose checked arguments the function returns true."""


def requires_approval(spec: ToolSpec, settings: ToolSettings, arguments: dict[str, Any]) -> bool:
    """Whether a call with these checked arguments needs approval. A rule that fails counts as
    yes."""
    if settings.requires_approval != ApprovalMode.OWN:
        return settings.requires_approval != ApprovalMode.NEVER
    rule = spec.metadata.get("requires_approval", False)
    if not callable(rule):
        return bool(rule)
    with capture_error() as attempt:
        return bool(rule(arguments))
    logger.error(
        "whether tool %s needs approval cannot be told; it does", spec.name, exc_info=attempt.error
    )
    return True


def validate_approval_rule(rule: Any) -> ApprovalRule:
    """``rule``, or :class:`InvalidDeclaration` for what is neither a truth value nor a function of
    the arguments."""
    if isinstance(rule, bool):
        return rule
    if not callable(rule) or inspect.iscoroutinefunction(rule) or not _takes_one(rule):
        raise InvalidDeclaration(
            f"requires_approval is a bool or a plain function of the arguments, not {rule!r}"
        )
    return rule  # type: ignore[no-any-return]


def _takes_one(rule: Callable[..., Any]) -> bool:
    try:
        inspect.signature(rule).bind({})
    except (TypeError, ValueError):
        return False
    return True
