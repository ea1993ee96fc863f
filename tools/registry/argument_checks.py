"""Errors in arguments that only the tool itself can find, in addition to those of its schema."""

import logging

from tools.contract import ToolExecutionContext, ToolSpec
from tools.error_boundary import capture_error
from tools.errors import InvalidArguments
from tools.schemas.validation_messages import limit_lines

logger = logging.getLogger(__name__)

OWN_CHECKS_KEY = "own_messages"
"""The entry of a spec's metadata with a plain function of arguments and context: the faults that
the tool would
find in arguments that need not fit its schema, as lines that begin with their place."""


def add_own_messages(
    error: InvalidArguments, spec: ToolSpec, context: ToolExecutionContext | None
) -> InvalidArguments:
    """``error``, which the schema of ``spec`` made, with the tool's own faults behind it: one line
    for each place.

    So the model can fix all of them in one go. The tool checks again when the schema finds nothing.
    """
    ask = spec.metadata.get(OWN_CHECKS_KEY)
    if not callable(ask):
        return error
    found: list[str] = []
    with capture_error() as attempt:
        found = [
            line
            for line in ask(error.arguments, context or ToolExecutionContext())
            if not _is_named(line, error)
        ]
    if attempt.error is not None:
        logger.error(
            "tool %s cannot say what is wrong with its arguments", spec.name, exc_info=attempt.error
        )
    return InvalidArguments(limit_lines([*error.problems, *found]), error.arguments)


def _is_named(line: str, error: InvalidArguments) -> bool:
    """Whether the schema found an error at the same place, or inside it."""
    place = line.partition(" ")[0]
    others = [problem.partition(" ")[0] for problem in error.problems]
    return any(other == place or other.startswith((f"{place}.", f"{place}[")) for other in others)
