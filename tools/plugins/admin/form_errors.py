"""What is wrong with a plugin's configuration, field by field, in words that repeat no value: one
may be a secret."""

from collections.abc import Callable, Iterator
from typing import Any

from django.utils.translation import gettext
from jsonschema.exceptions import ValidationError

from tools.schemas.arguments import UNUSABLE_SCHEMA, build_validator
from tools.schemas.patterns import TooMuchText, limit_matching

#: Characters of what a plugin has written that a fault repeats.
SHOWN = 100

FieldMessage = tuple[str, str]
"""The name of a value ("" for the configuration as a whole), and a translated sentence."""


def check_plugin_config(
    schema: Any, config: dict[str, Any], *, is_complete: bool
) -> list[FieldMessage]:
    """What ``schema`` finds wrong with ``config``, in which secrets are opened; with
    ``is_complete`` also what is missing."""
    if not isinstance(schema, dict):
        return []
    try:
        with limit_matching():
            found = list(build_validator(schema).iter_errors(config))
    except TooMuchText:
        return [
            ("", gettext("The texts are too long to be matched against the plugin's patterns."))
        ]
    except UNUSABLE_SCHEMA as error:
        return [
            (
                "",
                gettext("The plugin's config_schema cannot be used: %(reason)s")
                % {"reason": str(error)[:SHOWN]},
            )
        ]
    problems = [fault for error in found for fault in _problems(error, is_complete=is_complete)]
    return list(dict.fromkeys(problems))


def _problems(error: ValidationError, *, is_complete: bool) -> Iterator[FieldMessage]:
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required" and not path:
        wanted: Any = error.validator_value
        given: Any = error.instance
        missing = [str(name) for name in wanted if name not in given] if is_complete else []
        yield from ((name, gettext("The plugin needs this.")) for name in dict.fromkeys(missing))
        return
    words = _words(error)
    yield path[0] if path else "", f"{' → '.join(path[1:])}: {words}" if path[1:] else words


def _words(error: ValidationError) -> str:
    make = _WORDS.get(str(error.validator))
    return (
        make(error.validator_value)
        if make
        else gettext("The plugin does not take this (%(rule)s).") % {"rule": error.validator}
    )


def _kinds(wanted: Any) -> str:
    names = {
        "string": gettext("text"),
        "integer": gettext("a whole number"),
        "number": gettext("a number"),
        "boolean": gettext("yes or no"),
        "array": gettext("a list"),
        "object": gettext("an object"),
        "null": gettext("nothing"),
    }
    kinds = wanted if isinstance(wanted, list) else [wanted]
    return gettext("This has to be: %(kinds)s.") % {
        "kinds": ", ".join(names.get(kind, str(kind)) for kind in kinds)
    }


def _missing(names: Any) -> str:
    return gettext("Needed in it: %(names)s.") % {"names": ", ".join(map(str, names))[:SHOWN]}


_WORDS: dict[str, Callable[[Any], str]] = {
    "type": _kinds,
    "required": _missing,
    "enum": lambda _: gettext("This is none of the values that the plugin takes."),
    "const": lambda _: gettext("This is none of the values that the plugin takes."),
    "pattern": lambda pattern: (
        gettext("This has to match the pattern %(pattern)s.") % {"pattern": str(pattern)[:SHOWN]}
    ),
    "uniqueItems": lambda _: gettext("Nothing may be listed twice."),
    "minLength": lambda limit: gettext("At least %(limit)s characters.") % {"limit": limit},
    "maxLength": lambda limit: gettext("At most %(limit)s characters.") % {"limit": limit},
    "minItems": lambda limit: gettext("At least %(limit)s entries.") % {"limit": limit},
    "maxItems": lambda limit: gettext("At most %(limit)s entries.") % {"limit": limit},
    "minimum": lambda limit: gettext("Not less than %(limit)s.") % {"limit": limit},
    "maximum": lambda limit: gettext("Not more than %(limit)s.") % {"limit": limit},
    "exclusiveMinimum": lambda limit: gettext("More than %(limit)s.") % {"limit": limit},
    "exclusiveMaximum": lambda limit: gettext("Less than %(limit)s.") % {"limit": limit},
    "multipleOf": lambda limit: gettext("A multiple of %(limit)s.") % {"limit": limit},
}
