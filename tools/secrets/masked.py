"""Secrets as requests need them, and the mask that keeps them out of everything that is shown,
servers and their addresses included. Pure.

A key cannot be recognized by its form, so every part counts as a key unless it is known not to be
one. Pages show host, command and names of options to users who may only view; an export has a
placeholder for everything else.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from django.utils.translation import gettext

from tools.contract import ToolFailed
from tools.secrets.hosts import SecretHosts, format_origin

MASK = "••••"
"""What stands for a value that is stored and not shown."""


def mask_value(value: object) -> object:
    """What may be shown of a value that may be a key: nothing, or the names of an object."""
    if isinstance(value, Mapping):
        return dict.fromkeys(value, MASK)
    return MASK if value else ""


class SecretRefused(ToolFailed):
    """A secret would have gone where it may not. ``operator`` says so in the operator's words."""

    def __init__(self, name: str, target: str, hosts: SecretHosts) -> None:
        super().__init__(
            f"密钥 {name} 不允许发送到这个地址，请求没有发出。"
            f"请告诉机器人主人在后台“密钥”页检查它的主机，现在不要重试。"
        )
        self.operator = secret_refusal_message(name, target, hosts)


def secret_refusal_message(name: str, target: str, hosts: SecretHosts) -> str:
    """Why the secret ``name`` may not be sent to ``target``, for who set it up."""
    words = gettext(
        "The secret “%(name)s” may not be sent to %(target)s. Hosts that it names: %(hosts)s."
    )
    told = words % {"name": name, "target": target or "?", "hosts": hosts.words}
    if not target:
        return told
    remedy = gettext("To permit it, add this line to the hosts of the secret: %(line)s")
    return f"{told} {remedy % {'line': target}}"


@dataclass(frozen=True, slots=True)
class SecretValues:
    """What ``{secret:NAME}`` stands for; ``undecryptable`` are the names of values stored under
    another secret key."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    undecryptable: frozenset[str] = frozenset()
    hosts: Mapping[str, SecretHosts] = field(default_factory=dict)
    """Where each may be sent; nowhere, where it is not among these."""

    def __getitem__(self, name: str) -> str:
        """The secret. Raises :class:`tools.contract.ToolFailed`, for the model, where there is none
        to be had."""
        if name in self.undecryptable:
            raise ToolFailed(
                f"密钥 {name} 已无法读取（服务器的主密钥变了），"
                f"请告诉机器人主人在后台“密钥”页重新填写，现在不要重试。"
            )
        if name not in self.values:
            raise ToolFailed(
                f"密钥 {name} 不存在，请告诉机器人主人在后台“密钥”页添加，现在不要重试。"
            )
        return self.values[name]

    def check_destination(self, names: Iterable[str], url: str) -> None:
        """Raise :class:`SecretRefused` unless a request to ``url`` may carry all those secrets of
        ``names`` that there are."""
        for name in sorted(self.values.keys() & names):
            if not (hosts := self.hosts.get(name, SecretHosts())).permits(url):
                raise SecretRefused(name, format_origin(url), hosts)

    def mask(self, names: Iterable[str]) -> "SecretMask":
        """What hides the secrets of these names."""
        return SecretMask(self.values[name] for name in names if name in self.values)


class SecretMask:
    """Puts ``mask`` in the place of secrets, in every form in which a request or an answer may
    write them."""

    def __init__(self, secrets: Iterable[str] = (), mask: str = MASK) -> None:
        self._mask = mask
        forms = {form for secret in secrets for form in _forms(secret) if form}
        self._forms = sorted(forms, key=len, reverse=True)

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._forms)

    def text(self, text: str) -> str:
        for form in (
            self._forms
        ):  # one expression for all would hold the other threads up twenty times as long
            text = text.replace(form, self._mask)
        return text

    def hides(self, data: bytes) -> bool:
        """Whether ``data`` holds a secret."""
        return any(form.encode("utf-8", "replace") in data for form in self._forms)

    def json(self, value: object) -> Any:
        """A copy of JSON without the secrets, in names and texts. Raises RecursionError for what is
        nested too deep."""
        if not self:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(key): self.json(item) for key, item in value.items()}
            case list():
                return [self.json(item) for item in value]
            case int() | float() if self.text(str(value)) != str(value):
                return self._mask
            case _:
                return value


def _forms(secret: str) -> Iterator[str]:
    for percent in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield percent
        yield re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), percent)
    yield from (secret, secret.strip(), html.escape(secret), html.escape(secret, quote=False))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield base64.b64encode(secret.encode("utf-8", "replace")).decode().rstrip("=")


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
    origin = format_origin(url)
    return f"{origin}/{MASK}" if origin and _rest(url) else origin or MASK


def export_url(url: str) -> str:
    """``url`` with a placeholder for its path and for each value behind it."""
    origin = format_origin(url)
    if not origin:
        return export_placeholder("url") if url else ""
    parts = urlsplit(url)
    path = f"/{export_placeholder('path')}" if parts.path.strip("/") else parts.path
    query = "&".join(_handed_pair(pair) for pair in parts.query.split("&") if pair)
    return f"{origin}{path}{'?' if query else ''}{query}" + (
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
    for index, (option, sign, rest) in enumerate(_read(arguments)):
        if index == package:
            handed.append(arguments[index])
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
    index = next(
        (number for number, argument in enumerate(arguments) if argument not in _SWITCHES), None
    )
    return index if index is not None and _PACKAGE.fullmatch(arguments[index]) else None


def _rest(url: str) -> str:
    """Everything of ``url`` after its host, except a bare slash."""
    rest = re.sub(r"^[^:]*:[/\\]*[^/?#\\]*", "", url, count=1)
    return "" if rest == "/" else rest


def _handed_pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    if not sign or not _NAME.fullmatch(name):
        return export_placeholder("query")
    return f"{name}={export_placeholder(name) if value else ''}"
