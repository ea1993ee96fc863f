"""What an OpenAPI document offers: its operations, its servers, and how they may be called.
Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from tools.http_tools.openapi.schemas import BrokenReferenceError, Json, entries, follow, objects
from tools.text.untrusted import clean_line

METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
MAX_OPERATIONS = 2_000
MAX_SERVERS = 50
SUMMARY_LIMIT = 200
NAME_LIMIT = 60


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. ``parts`` is its description in the document, ``shared`` that of the
    path."""

    method: str
    path: str
    parts: Json
    shared: Json

    @property
    def key(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def summary(self) -> str:
        said = (self.parts.get("summary"), self.parts.get("description"))
        return clean_line(
            next(filter(None, (*said, self.shared.get("summary"))), ""), SUMMARY_LIMIT
        )

    @property
    def tags(self) -> tuple[str, ...]:
        given = self.parts.get("tags")
        found = given[:10] if isinstance(given, list) else ()
        return tuple(clean_line(tag, 60) for tag in found if isinstance(tag, str))

    @property
    def is_deprecated(self) -> bool:
        return self.parts.get("deprecated") is True


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """A document at a glance. ``problems`` names, with the reason, paths that cannot be read."""

    title: str
    version: str
    servers: list[str]
    operations: list[Operation]
    problems: list[str]


def outline_document(document: Json, source_url: str = "") -> DocumentOutline:
    """What ``document``, as :func:`read_document` gives it, offers; ``source_url`` is where it was
    fetched from."""
    operations: list[Operation] = []
    problems: list[str] = []
    for path, item in document["paths"].items():
        try:
            operations += _operations(path, follow(document, item))
        except BrokenReferenceError as error:
            problems.append(f"{clean_line(path, SUMMARY_LIMIT)}: {error}")
    info = entries(document.get("info"))
    return DocumentOutline(
        title=clean_line(str(info.get("title") or ""), SUMMARY_LIMIT),
        version=clean_line(str(info.get("version") or ""), 40),
        servers=list_servers(document.get("servers"), source_url),
        operations=operations[:MAX_OPERATIONS],
        problems=problems[:MAX_OPERATIONS],
    )


def _operations(path: str, item: Json) -> Iterator[Operation]:
    for method in METHODS if path.startswith("/") else ():
        if isinstance(parts := item.get(method), dict):
            yield Operation(method.upper(), path, parts, item)


def list_servers(given: Any, source_url: str = "") -> list[str]:
    """The addresses of ``given``, variables at their defaults, relative ones by ``source_url``
    where that is known."""
    found = [_server(entry, source_url) for entry in objects(given)[:MAX_SERVERS] or [{}]]
    return list(
        dict.fromkeys(url.rstrip("/") for url in found if url.startswith(("http://", "https://")))
    )


def _server(entry: Json, source_url: str) -> str:
    known = entries(entry.get("variables"))

    def value(found: re.Match[str]) -> str:
        return str(entries(known.get(found[1])).get("default", found[0]))

    url = re.sub(r"\{([^{}]*)\}", value, str(entry.get("url") or "/")).strip()
    try:
        return urljoin(source_url, url)
    except ValueError:  # brackets that are no address
        return ""


def propose_tool_name(operation: Operation, prefix: str = "") -> str:
    """A name for the tool of ``operation``: its id, or else its method and path, in snake case."""
    for words in (operation.parts.get("operationId"), operation.key):
        if isinstance(words, str) and (name := to_snake_case(words)):
            return f"{prefix}{name}"[:NAME_LIMIT].rstrip("_")
    return f"{prefix}{operation.method.lower()}"


def to_snake_case(words: str) -> str:
    """``words`` in small ASCII letters, digits and single underscores; "" where nothing is left."""
    parted = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3_\2", words[:300])
    return re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")


def make_unique(name: str, taken: Iterable[str], limit: int = NAME_LIMIT) -> str:
    """``name``, with a number behind it when it is among ``taken``."""
    used, found, number = set(taken), name, 1
    while found in used:
        number += 1
        found = f"{name[: limit - 1 - len(str(number))]}_{number}"
    return found
