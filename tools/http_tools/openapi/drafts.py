"""Operations of an OpenAPI document as the values of HTTP tools. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext

from tools.http_tools.openapi.operations import Operation, list_servers
from tools.http_tools.openapi.schemas import (
    BrokenReferenceError,
    ReferenceResolver,
    SchemaReader,
    short_description,
)
from tools.http_tools.openapi.security import SecretWanted, find_credentials
from tools.http_tools.templates import PARAMETER_NAME
from tools.text.untrusted import clean_line, clean_untrusted

DESCRIPTION_LIMIT = 1_000
UNSUPPORTED_METHODS = frozenset({"HEAD", "OPTIONS", "TRACE"})
IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that OpenAPI says are to be ignored: they are described elsewhere in the
document."""
FORM = "application/x-www-form-urlencoded"
SIGNS = {"spaceDelimited": "空格", "pipeDelimited": "竖线 |"}
LOOSE = {"type", "properties", "required", "description", "additionalProperties"}
"""Keywords of an object whose properties can stand as arguments by themselves."""


@dataclass(slots=True)
class ToolDraft:
    """The content of a new row (``values``, by the names of its fields), the secrets it names, and
    what was left out.

    ``problem`` is the reason why the operation cannot become a tool; "" when it can.
    """

    operation: Operation
    values: dict[str, Any]
    secrets: list[SecretWanted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""


class _Unfit(Exception):  # noqa: N818 - it says what is wrong
    """The operation cannot be a tool; ``str`` says why, translated."""


def draft_tool(
    document: dict[str, Any], operation: Operation, *, name: str, server: str, prefix: str = ""
) -> ToolDraft:
    """The tool ``name`` for ``operation`` at ``server``; ``prefix`` stands before the names of
    secrets. Never raises."""
    if operation.method in UNSUPPORTED_METHODS:
        words = gettext("%(method)s requests answer nothing that a model could read.")
        return ToolDraft(operation, {"name": name}, problem=words % {"method": operation.method})
    try:
        return _Drafting(document, operation).draft(name, server, prefix)
    except (_Unfit, BrokenReferenceError) as error:
        return ToolDraft(operation, {"name": name}, problem=str(error))


class _Drafting:
    """The making of one draft."""

    def __init__(self, document: dict[str, Any], operation: Operation) -> None:
        self._document, self._operation = document, operation
        self._references = ReferenceResolver(document)
        self._schemas = SchemaReader(self._references)
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._query: dict[str, Any] = {}
        self._headers: dict[str, str] = {}
        self._in_path: dict[str, str] = {}
        self._body = ("none", "")

    def draft(self, name: str, server: str, prefix: str) -> ToolDraft:
        proved = find_credentials(self._document, self._operation, prefix)
        if proved.problem:
            raise _Unfit(proved.problem)
        for parameter in self._parameters():
            if parameter["name"] not in {*proved.headers, *proved.query}:
                self._add_parameter(parameter)
        path = self._path()
        self._add_body()
        kind, body = self._body
        schema: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        values = {
            "name": name,
            "description": self._description(),
            "method": self._operation.method,
            "url": self._server(server) + path,
            "query": self._query | proved.query,
            "headers": self._headers | proved.headers,
            "body_kind": kind,
            "body": body,
            "parameters_schema": schema,
        }
        return ToolDraft(
            self._operation, values, proved.secrets, [*proved.notes, *self._schemas.notes]
        )

    def _description(self) -> str:
        texts = [self._operation.parts.get(word) for word in ("summary", "description")]
        words = dict.fromkeys(text.strip() for text in texts if isinstance(text, str))
        return clean_untrusted("\n".join(filter(None, words)), DESCRIPTION_LIMIT) or clean_line(
            self._operation.key, DESCRIPTION_LIMIT
        )

    def _server(self, chosen: str) -> str:
        """The address that is ``chosen`` for all, unless the operation or its path has one of its
        own."""
        for part in (self._operation.parts, self._operation.shared):
            if own := list_servers(part["servers"], f"{chosen}/") if part.get("servers") else []:
                return own[0]
        return chosen

    # --- Parameters -----------------------------------------------------------------

    def _parameters(self) -> Iterator[dict[str, Any]]:
        """Those of the operation, which replace those of its path by place and name. Raises
        BrokenReference."""
        found: dict[tuple[Any, str], dict[str, Any]] = {}
        for part in (self._operation.shared, self._operation.parts):
            given = part.get("parameters")
            for entry in given if isinstance(given, list) else ():
                parameter = self._references.follow(entry)
                name = parameter.get("name") if isinstance(parameter, dict) else None
                if isinstance(name, str) and name:
                    found[str(parameter.get("in")), name] = parameter
        yield from found.values()

    def _add_parameter(self, parameter: dict[str, Any]) -> None:
        place, name = parameter.get("in"), parameter["name"]
        if place == "header" and name.lower() in IGNORED_HEADERS:
            return
        is_required = parameter.get("required") is True
        content = parameter.get("content")
        media = next(iter(content.values()), None) if isinstance(content, dict) else None
        schema = self._media_schema(media if isinstance(media, dict) else parameter)
        if words := short_description(parameter):
            schema["description"] = words
        if place == "path":
            self._in_path[name] = self._place(name, schema, is_required=True)
        elif place == "query":
            self._add_query(parameter, schema, is_required=is_required)
        elif place == "header":
            self._headers[name] = self._place(name, schema, is_required=is_required)
        else:
            self._leave_out(
                gettext("It needs the cookie “%(name)s”, and cookies are not sent."),
                gettext("The cookie “%(name)s” is left out."),
                {"name": name[:60]},
                is_required=is_required,
            )

    def _leave_out(
        self, problem: str, note: str, shown: dict[str, str], *, is_required: bool
    ) -> None:
        """Note what cannot be sent. Raises :class:`_Unfit` where calls need it."""
        if is_required:
            raise _Unfit(problem % shown)
        self._schemas.notes.append(note % shown)

    def _add_query(
        self, parameter: dict[str, Any], schema: dict[str, Any], *, is_required: bool
    ) -> None:
        name, style = parameter["name"], str(parameter.get("style") or "form")
        explodes = parameter.get("explode", style in ("form", "deepObject")) is True
        is_plain = "content" in parameter  # an object stands there as JSON
        has_parts = _is_object(schema) and schema.get("properties")
        if has_parts and style in ("form", "deepObject") and explodes and not is_plain:
            needed = schema.get("required", ()) if is_required else ()
            for key, part in schema["properties"].items():
                entry = f"{name}[{key}]" if style == "deepObject" else key
                self._query[entry] = self._place(entry, part, is_required=key in needed)
            return
        is_repeated = schema.get("type") == "array" and style == "form" and explodes
        if not is_plain and not is_repeated:
            schema = _as_text(schema, SIGNS.get(style, "英文逗号"))
        self._query[name] = self._place(name, schema, is_required=is_required)

    def _path(self) -> str:
        """The path as a template, with arguments also where no parameter describes a place, as
        happens in documents."""

        def place(found: re.Match[str]) -> str:
            name = found[1]
            if name not in self._in_path:
                self._in_path[name] = self._place(name, {"type": "string"}, is_required=True)
            return self._in_path[name]

        return re.sub(r"\{([^{}]*)\}", place, self._operation.path)

    def _place(self, wanted: str, schema: dict[str, Any], *, is_required: bool) -> str:
        """Declare an argument, named ``wanted`` where that can be a name and is free; returns its
        place in a template."""
        name = (
            wanted
            if PARAMETER_NAME.fullmatch(wanted)
            else re.sub(r"[^A-Za-z0-9]+", "_", wanted[:60]).strip("_") or "value"
        )
        free, number = name, 1
        while free in self._properties:
            number += 1
            free = f"{name[:60]}_{number}"
        if name != wanted:
            schema = {
                **schema,
                "description": clean_line(
                    f"{wanted}: {schema.get('description', '')}".rstrip(": "), 400
                ),
            }
        self._properties[free] = schema
        if is_required:
            self._required.append(free)
        return f"{{{free}}}"

    # --- Body -----------------------------------------------------------------------

    def _add_body(self) -> None:
        request = self._references.follow(self._operation.parts.get("requestBody"))
        content = request.get("content") if isinstance(request, dict) else None
        if not isinstance(content, dict) or not content:
            return
        is_required = request.get("required") is True
        media = {
            str(kind).partition(";")[0].strip().lower(): part for kind, part in content.items()
        }
        json_kinds = (k for k in media if k in ("application/json", "*/*") or k.endswith("+json"))
        if kind := next(json_kinds, ""):
            schema = self._media_schema(media[kind])
            template = (
                self._flattened(schema)
                if _is_flat(schema)
                else self._place("body", schema, is_required=is_required)
            )
            self._body = "json", json.dumps(template, ensure_ascii=False, indent=2)
        elif FORM in media:
            schema = self._media_schema(media[FORM])
            if not _is_flat(schema):
                raise _Unfit(gettext("It wants a form without saying which fields it has."))
            self._body = "form", json.dumps(self._flattened(schema), ensure_ascii=False, indent=2)
        elif kind := next((kind for kind in media if kind.startswith("text/")), ""):
            self._body = "text", self._place("body", {"type": "string"}, is_required=is_required)
            self._headers["Content-Type"] = kind
        else:
            self._leave_out(
                gettext("It wants a body of the type %(type)s, which cannot be made here."),
                gettext("Its body of the type %(type)s is left out."),
                {"type": next(iter(media))[:80]},
                is_required=is_required,
            )

    def _media_schema(self, media: Any) -> dict[str, Any]:
        return self._schemas.read(media.get("schema") if isinstance(media, dict) else None)

    def _flattened(self, schema: dict[str, Any]) -> dict[str, str]:
        """A place for each property. What they need is needed even where the body is not: few
        documents say that it is."""
        needed = schema.get("required", ())
        return {
            name: self._place(
                f"body_{name}" if name in self._properties else name,
                part,
                is_required=name in needed,
            )
            for name, part in schema["properties"].items()
        }


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object" or (
        isinstance(schema.get("type"), list) and "object" in schema["type"]
    )


def _is_flat(schema: dict[str, Any]) -> bool:
    """Whether the properties of ``schema`` say all of it, so that each can be an argument by
    itself."""
    return (
        _is_object(schema)
        and bool(schema.get("properties"))
        and schema.keys() <= LOOSE
        and not schema.get("additionalProperties")
    )


def _as_text(schema: dict[str, Any], sign: str) -> dict[str, Any]:
    """A list, where only one value can stand, as a text that holds its items. The words are for the
    model."""
    if schema.get("type") != "array":
        return schema
    hint = f"多个值之间用{sign}分隔"
    return {
        "type": "string",
        "description": f"{words}（{hint}）" if (words := schema.get("description")) else hint,
    }
