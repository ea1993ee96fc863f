"""What an OpenAPI document offers: its operations, its servers, and how they may be called.
Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from tools.http_tools.openapi.schemas import BrokenReferenceError, ReferenceResolver
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
    summary: str
    tags: tuple[str, ...]
    is_deprecated: bool
    parts: dict[str, Any]
    shared: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """A document at a glance. ``faults`` names, with the reason, paths that cannot be read."""

    title: str
    version: str
    servers: list[str]
    operations: list[Operation]
    problems: list[str]


def outline_document(document: dict[str, Any], source_url: str = "") -> DocumentOutline:
    """What ``document``, as :func:`read_document` gives it, offers; ``source_url`` is where it was
    fetched from."""
    info = document.get("info")
    said = info if isinstance(info, dict) else {}
    operations: list[Operation] = []
    problems: list[str] = []
    for path, item in document["paths"].items():
        try:
            operations += _operations(path, ReferenceResolver(document).follow(item))
        except BrokenReferenceError as error:
            problems.append(f"{clean_line(path, SUMMARY_LIMIT)}: {error}")
    return DocumentOutline(
        title=clean_line(str(said.get("title") or ""), SUMMARY_LIMIT),
        version=clean_line(str(said.get("version") or ""), 40),
        servers=list_servers(document.get("servers"), source_url),
        operations=operations[:MAX_OPERATIONS],
        problems=problems[:MAX_OPERATIONS],
    )


def list_servers(given: Any, source_url: str = "") -> list[str]:
    """The addresses of ``given``, variables at their defaults, relative ones by ``source_url``
    where that is known."""
    found = (
        [_server(entry) for entry in given[:MAX_SERVERS] if isinstance(entry, dict)]
        if isinstance(given, list)
        else []
    )
    resolved = (_joined(source_url, url) for url in (found or ["/"]))
    return list(
        dict.fromkeys(
            url.rstrip("/") for url in resolved if url.startswith(("http://", "https://"))
        )
    )


def propose_tool_name(operation: Operation, prefix: str = "") -> str:
    """A name for the tool of ``operation``: its id, or else its method and path, in snake case."""
    for words in (operation.parts.get("operationId"), f"{operation.method} {operation.path}"):
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


def _operations(path: str, item: Any) -> Iterator[Operation]:
    if not isinstance(item, dict) or not path.startswith("/"):
        return
    for method in METHODS:
        if isinstance(parts := item.get(method), dict):
            tags = parts.get("tags")
            yield Operation(
                method=method.upper(),
                path=path,
                summary=clean_line(
                    str(
                        parts.get("summary")
                        or parts.get("description")
                        or item.get("summary")
                        or ""
                    ),
                    SUMMARY_LIMIT,
                ),
                tags=tuple(clean_line(tag, 60) for tag in tags[:10] if isinstance(tag, str))
                if isinstance(tags, list)
                else (),
                is_deprecated=parts.get("deprecated") is True,
                parts=parts,
                shared=item,
            )


def _server(entry: dict[str, Any]) -> str:
    variables = entry.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def value(found: re.Match[str]) -> str:
        variable = known.get(found[1])
        return str(variable.get("default", "")) if isinstance(variable, dict) else found[0]

    return re.sub(r"\{([^{}]*)\}", value, str(entry.get("url") or "/")).strip()


def _joined(source_url: str, url: str) -> str:
    try:
        return urljoin(source_url, url)
    except ValueError:  # brackets that are no address
        return ""
