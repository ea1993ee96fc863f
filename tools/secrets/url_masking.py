"""Servers as they are shown and exported, without the keys that addresses and arguments often
contain. Pure.

A key cannot be recognized by its form, so every part counts as a key unless it is known not to be
one. Pages show host, command and names of options to users who may only view; an export has a
placeholder for everything else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from tools.secrets.hosts import format_origin
from tools.secrets.masked import MASK

PLACEHOLDER = re.compile(r"\$\{[^{}]*\}")

_OPTION = re.compile(r"(--[A-Za-z][A-Za-z0-9_.-]{0,39}|-[A-Za-z])(=)?(.*)", re.DOTALL)
_RUNNERS = frozenset({"npx", "bunx", "uvx"})
"""Programs whose first argument is the package to run, and no key."""
_SWITCHES = frozenset({"-y", "--yes", "-q", "--quiet"})
"""Their options that take no value."""
_PACKAGE = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9.^~_-]+)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


def export_placeholder(name: str) -> str:
    """The mask of files: ``${NAME}``, which says what belongs there."""
    return f"${{{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_').upper() or 'SECRET'}}}"


def mask_url(url: str) -> str:
    """Scheme and host of ``url``, with dots where there is more."""
    if not url:
        return ""
    place = format_origin(url)
    return f"{place}/{MASK}" if place and _rest(url) else place or MASK


def export_url(url: str) -> str:
    """``url`` with a placeholder for its path and for each value behind it."""
    place = format_origin(url)
    if not place:
        return export_placeholder("url") if url else ""
    parts = urlsplit(url)
    path = f"/{export_placeholder('path')}" if parts.path.strip("/") else parts.path
    query = "&".join(_handed_pair(pair) for pair in parts.query.split("&") if pair)
    return f"{place}{path}{'?' if query else ''}{query}" + (
        f"#{export_placeholder('fragment')}" if parts.fragment else ""
    )


def mask_command(command: str, arguments: Sequence[str]) -> str:
    """The name of a program, and of its arguments the names of options alone."""
    shown = [
        f"{option}{sign or ''}{MASK if rest else ''}" if option else MASK
        for option, sign, rest in _read(arguments)
    ]
    return " ".join([PurePath(command).name, *shown])


def export_arguments(
    command: str, arguments: Sequence[str], *, names_package: bool = True
) -> list[str]:
    """``arguments`` with a placeholder for all but names of options, and the package that a runner
    such as npx runs."""
    package = _package(command, arguments) if names_package else None
    handed, before = [], ""
    for place, (option, sign, rest) in enumerate(_read(arguments)):
        if place == package:
            handed.append(arguments[place])
        elif option:
            handed.append(f"{option}{sign or ''}{export_placeholder(option) if rest else ''}")
        else:
            handed.append(export_placeholder(before or "argument"))
        before = option if option and not rest and option not in _SWITCHES else ""
    return handed


def find_possible_keys(url: str, arguments: Sequence[str]) -> Iterator[str]:
    """What may be a key in an address and in arguments, for masking errors that repeat it."""
    parts = urlsplit(url) if format_origin(url) else urlsplit("")
    yield from (_rest(url).lstrip("/"), *parts.path.split("/"), parts.query, parts.fragment)
    for pair in parts.query.split("&"):
        yield pair.partition("=")[2]
    for option, _sign, rest in _read(arguments):
        yield from (rest, rest.rpartition(" ")[2])
        if not option and "://" in rest:
            yield from re.split(r"[/:@?&=#]+", rest)[1:]


def _read(arguments: Sequence[str]) -> Iterator[tuple[str, str | None, str]]:
    """Each argument as the option it names or "", the sign of equality, and everything else."""
    for argument in arguments:
        found = _OPTION.fullmatch(argument)
        if found is None or (found[3] and not found[2] and found[1].startswith("--")):
            yield "", None, argument
        else:
            yield found[1], found[2], found[3]


def _package(command: str, arguments: Sequence[str]) -> int | None:
    """The place of the package that a runner runs; None where that is not sure."""
    if PurePath(command).name not in _RUNNERS:
        return None
    place = next(
        (number for number, argument in enumerate(arguments) if argument not in _SWITCHES), None
    )
    return place if place is not None and _PACKAGE.fullmatch(arguments[place]) else None


def _rest(url: str) -> str:
    """Everything of ``url`` after its host, except a bare slash."""
    rest = re.sub(r"^[^:]*:[/\\]*[^/?#\\]*", "", url, count=1)
    return "" if rest == "/" else rest


def _handed_pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    if not sign or not _NAME.fullmatch(name):
        return export_placeholder("query")
    return f"{name}={export_placeholder(name) if value else ''}"


def masked(value: Any) -> Any:
    """A value of which nothing is shown, or an object of which the names are."""
    if isinstance(value, Mapping):
        return dict.fromkeys(value, MASK)
    return MASK if value else ""
