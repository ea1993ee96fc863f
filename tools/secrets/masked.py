"""Secrets as requests need them, and the mask that keeps them out of everything that is shown.
Pure."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

from django.utils.translation import gettext

from tools.errors import ToolFailed
from tools.secrets.hosts import SecretHosts, format_origin

MASK = "••••"
"""What stands for a value that is stored and not shown."""


def mask_value(value: Any) -> Any:
    """What may be shown of a value that may be a key: nothing, or the names of an object."""
    if isinstance(value, Mapping):
        return dict.fromkeys(value, MASK)
    return MASK if value else ""


class SecretRefused(ToolFailed):
    """A secret would have gone where it may not. ``operator`` says so in the operator's words."""

    def __init__(self, name: str, place: str, hosts: SecretHosts) -> None:
        super().__init__(
            f"密钥 {name} 不允许发送到这个地址，请求没有发出。"
            f"请告诉机器人主人在后台“密钥”页检查它的主机，现在不要重试。"
        )
        self.operator = secret_refusal_message(name, place, hosts)


def secret_refusal_message(name: str, place: str, hosts: SecretHosts) -> str:
    """Why the secret ``name`` may not be sent to ``place``, for who set it up."""
    words = gettext(
        "The secret “%(name)s” may not be sent to %(place)s. Hosts that it names: %(hosts)s."
    )
    told = words % {"name": name, "place": place or "?", "hosts": hosts.words}
    if not place:
        return told
    remedy = gettext("To permit it, add this line to the hosts of the secret: %(line)s")
    return f"{told} {remedy % {'line': place}}"


@dataclass(frozen=True, slots=True)
class SecretValues:
    """What ``{secret:NAME}`` stands for; ``undecryptable`` are the names of values stored under
    another secret key."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    undecryptable: frozenset[str] = frozenset()
    hosts: Mapping[str, SecretHosts] = field(default_factory=dict)
    """Where each may be sent; nowhere, where it is not among these."""

    def __getitem__(self, name: str) -> str:
        """The secret. Raises :class:`tools.errors.ToolFailed`, for the model, where there is none
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

    def json(self, value: Any) -> Any:
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
