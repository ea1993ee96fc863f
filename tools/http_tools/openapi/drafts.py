"""Operations of an OpenAPI document as the values of HTTP tools, with the secrets that they name;
and what the document offers: its operations, its servers, and how they may be called. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin

from django.utils.translation import gettext

from tools.http_tools.openapi.document import (
    BrokenReferenceError,
    Json,
    SchemaReader,
    entries,
    follow,
    objects,
    short_description,
)
from tools.http_tools.templates import PARAMETER_NAME
from tools.text.untrusted import clean_line, clean_untrusted

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
            shared = follow(document, item)
        except BrokenReferenceError as error:
            problems.append(f"{clean_line(path, SUMMARY_LIMIT)}: {error}")
            continue
        operations += [
            Operation(method.upper(), path, parts, shared)
            for method in METHODS
            if path.startswith("/") and isinstance(parts := shared.get(method), dict)
        ]
    info = entries(document.get("info"))
    return DocumentOutline(
        title=clean_line(str(info.get("title") or ""), SUMMARY_LIMIT),
        version=clean_line(str(info.get("version") or ""), 40),
        servers=list_servers(document.get("servers"), source_url),
        operations=operations[:MAX_OPERATIONS],
        problems=problems[:MAX_OPERATIONS],
    )


def list_servers(given: object, source_url: str = "") -> list[str]:
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


DESCRIPTION_LIMIT = 1_000
SECRET_LIMIT = 64
MAX_WAYS = 20
UNSUPPORTED_METHODS = frozenset({"HEAD", "OPTIONS", "TRACE"})
IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that OpenAPI says are to be ignored: they are described elsewhere in the
document."""
FORM = "application/x-www-form-urlencoded"
SIGNS = {"spaceDelimited": "空格", "pipeDelimited": "竖线 |"}
LOOSE = {"type", "properties", "required", "description", "additionalProperties"}
"""Keywords of an object whose properties can stand as arguments by themselves."""


@dataclass(frozen=True, slots=True)
class SecretWanted:
    """A secret that calls carry. ``is_pair`` is one that is entered as ``user:password`` and kept
    in Base64."""

    name: str
    hint: str
    is_pair: bool = False


@dataclass(slots=True)
class ToolDraft:
    """The content of a new row (``values``, by the names of its fields), the secrets it names, and
    what was left out.

    ``problem`` is the reason why the operation cannot become a tool; "" when it can.
    """

    operation: Operation
    values: Json
    secrets: list[SecretWanted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""


class _Unfit(Exception):  # noqa: N818 - it says what is wrong
    """The operation cannot be a tool; ``str`` says why, translated."""


def draft_tool(
    document: Json, operation: Operation, *, name: str, server: str, prefix: str = ""
) -> ToolDraft:
    """The tool ``name`` for ``operation`` at ``server``; ``prefix`` stands before the names of
    secrets. Never raises."""
    try:
        if operation.method in UNSUPPORTED_METHODS:
            words = gettext("%(method)s requests answer nothing that a model could read.")
            raise _Unfit(words % {"method": operation.method})
        return _Drafting(document, operation).draft(name, server, prefix)
    except (_Unfit, BrokenReferenceError) as error:
        return ToolDraft(operation, {"name": name}, problem=str(error))


class _Drafting:
    """The making of one draft."""

    def __init__(self, document: Json, operation: Operation) -> None:
        self._document, self._operation = document, operation
        self._schemas = SchemaReader(document)
        self._properties: Json = {}
        self._required: list[str] = []
        self._query: Json = {}
        self._headers: dict[str, str] = {}
        self._in_path: dict[str, str] = {}
        self._body = ("none", "")

    def draft(self, name: str, server: str, prefix: str) -> ToolDraft:
        proof = _find_proof(self._document, self._operation, prefix)
        for parameter in self._parameters():
            if parameter["name"] not in {*proof.headers, *proof.query}:
                self._add_parameter(parameter)
        path = self._path()
        self._add_body()
        kind, body = self._body
        schema: Json = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        values = {
            "name": name,
            "description": self._description(),
            "method": self._operation.method,
            "url": self._server(server) + path,
            "query": self._query | proof.query,
            "headers": self._headers | proof.headers,
            "body_kind": kind,
            "body": body,
            "parameters_schema": schema,
        }
        notes = [*proof.notes, *self._schemas.notes]
        return ToolDraft(self._operation, values, proof.secrets, notes)

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

    def _parameters(self) -> Iterator[Json]:
        """Those of the operation, which replace those of its path by place and name. Raises
        BrokenReferenceError."""
        found: dict[tuple[str, str], Json] = {}
        for part in (self._operation.shared, self._operation.parts):
            for entry in objects(part.get("parameters")):
                parameter = follow(self._document, entry)
                if isinstance(name := parameter.get("name"), str) and name:
                    found[str(parameter.get("in")), name] = parameter
        yield from found.values()

    def _add_parameter(self, parameter: Json) -> None:
        where, name = parameter.get("in"), parameter["name"]
        if where == "header" and name.lower() in IGNORED_HEADERS:
            return
        is_required = parameter.get("required") is True
        media = next(iter(entries(parameter.get("content")).values()), None)
        schema = self._schemas.read((media if isinstance(media, dict) else parameter).get("schema"))
        if words := short_description(parameter):
            schema["description"] = words
        if where == "path":
            self._in_path[name] = self._argument(name, schema, is_required=True)
        elif where == "query":
            self._add_query(parameter, schema, is_required=is_required)
        elif where == "header":
            self._headers[name] = self._argument(name, schema, is_required=is_required)
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

    def _add_query(self, parameter: Json, schema: Json, *, is_required: bool) -> None:
        name, style = parameter["name"], str(parameter.get("style") or "form")
        explodes = parameter.get("explode", style in ("form", "deepObject")) is True
        is_plain = "content" in parameter  # an object stands there as JSON
        has_parts = _is_object(schema) and schema.get("properties")
        if has_parts and style in ("form", "deepObject") and explodes and not is_plain:
            needed = schema.get("required", ()) if is_required else ()
            for key, part in schema["properties"].items():
                entry = f"{name}[{key}]" if style == "deepObject" else key
                self._query[entry] = self._argument(entry, part, is_required=key in needed)
            return
        is_list = schema.get("type") == "array" and not is_plain
        if is_list and not (style == "form" and explodes):  # one value, a text that holds all
            hint = f"多个值之间用{SIGNS.get(style, '英文逗号')}分隔"
            words = schema.get("description")
            schema = {"type": "string", "description": f"{words}（{hint}）" if words else hint}
        self._query[name] = self._argument(name, schema, is_required=is_required)

    def _path(self) -> str:
        """The path as a template, with arguments also where no parameter describes a place, as
        happens in documents."""

        def argument(found: re.Match[str]) -> str:
            name = found[1]
            if name not in self._in_path:
                self._in_path[name] = self._argument(name, {"type": "string"}, is_required=True)
            return self._in_path[name]

        return re.sub(r"\{([^{}]*)\}", argument, self._operation.path)

    def _argument(self, wanted: str, schema: Json, *, is_required: bool) -> str:
        """Declare an argument, named ``wanted`` where that can be a name and is free; returns its
        place in a template."""
        name = wanted
        if not PARAMETER_NAME.fullmatch(wanted):
            name = re.sub(r"[^A-Za-z0-9]+", "_", wanted[:60]).strip("_") or "value"
            words = f"{wanted}: {schema.get('description', '')}".rstrip(": ")
            schema = {**schema, "description": clean_line(words, 400)}
        free, number = name, 1
        while free in self._properties:
            number += 1
            free = f"{name[:60]}_{number}"
        self._properties[free] = schema
        if is_required:
            self._required.append(free)
        return f"{{{free}}}"

    # --- Body -----------------------------------------------------------------------

    def _add_body(self) -> None:
        request = follow(self._document, self._operation.parts.get("requestBody"))
        if not (content := entries(request.get("content"))):
            return
        is_required = request.get("required") is True
        media = {
            str(kind).partition(";")[0].strip().lower(): part for kind, part in content.items()
        }
        json_kinds = (k for k in media if k in ("application/json", "*/*") or k.endswith("+json"))
        if kind := next(json_kinds, FORM if FORM in media else ""):
            schema = self._schemas.read(entries(media[kind]).get("schema"))
            if not (is_flat := _is_flat(schema)) and kind == FORM:
                raise _Unfit(gettext("It wants a form without saying which fields it has."))
            template = (
                self._flattened(schema)
                if is_flat
                else self._argument("body", schema, is_required=is_required)
            )
            text = json.dumps(template, ensure_ascii=False, indent=2)
            self._body = "form" if kind == FORM else "json", text
        elif kind := next((kind for kind in media if kind.startswith("text/")), ""):
            self._body = "text", self._argument("body", {"type": "string"}, is_required=is_required)
            self._headers["Content-Type"] = kind
        else:
            self._leave_out(
                gettext("It wants a body of the type %(type)s, which cannot be made here."),
                gettext("Its body of the type %(type)s is left out."),
                {"type": next(iter(media))[:80]},
                is_required=is_required,
            )

    def _flattened(self, schema: Json) -> dict[str, str]:
        """A place for each property. What they need is needed even where the body is not: few
        documents say that it is."""
        needed = schema.get("required", ())
        return {
            name: self._argument(
                f"body_{name}" if name in self._properties else name,
                part,
                is_required=name in needed,
            )
            for name, part in schema["properties"].items()
        }


def _is_object(schema: Json) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _is_flat(schema: Json) -> bool:
    """Whether the properties of ``schema`` say all of it, so that each can be an argument by
    itself."""
    says_all = schema.keys() <= LOOSE and not schema.get("additionalProperties")
    return _is_object(schema) and bool(schema.get("properties")) and says_all


# --- Who calls ------------------------------------------------------------------


@dataclass(slots=True)
class _Proof:
    """What is sent to prove who calls."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    secrets: list[SecretWanted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _find_proof(document: Json, operation: Operation, prefix: str) -> _Proof:
    """The first of the ways that the document names and that can be gone; none where calls need to
    prove nothing. Raises :class:`_Unfit` where none can be gone."""
    ways = objects(operation.parts.get("security", document.get("security")))
    problems = []
    for way in ways[:MAX_WAYS] if {} not in ways else ():
        proof = _Proof()
        try:
            for name in way:
                _add_scheme(proof, name, _scheme(document, name), prefix)
        except _Unfit as problem:
            problems.append(problem)
        else:
            return proof
    if problems:
        raise problems[0]
    return _Proof()


def _scheme(document: Json, name: str) -> Json:
    schemes = entries(entries(document.get("components")).get("securitySchemes"))
    try:
        return follow(document, schemes.get(name))
    except BrokenReferenceError:
        return {}


def _add_scheme(proof: _Proof, name: str, scheme: Json, prefix: str) -> None:
    """Add one scheme to what is sent. Raises :class:`_Unfit` where that cannot be done."""
    secret = propose_secret_name(name, prefix)
    target, key, value = proof.headers, "Authorization", f"Bearer {{secret:{secret}}}"
    kind, way = str(scheme.get("type") or ""), str(scheme.get("scheme") or "").lower()
    where = scheme.get("in")
    if kind == "apiKey" and where in ("header", "query") and isinstance(scheme.get("name"), str):
        target = proof.headers if where == "header" else proof.query
        key, value, hint = scheme["name"], f"{{secret:{secret}}}", gettext("the API key")
    elif (kind, way) == ("http", "bearer"):
        hint = gettext("the access token, without the word Bearer")
    elif (kind, way) == ("http", "basic"):
        value = f"Basic {{secret:{secret}}}"
        hint = gettext("user name and password as user:password")
    elif kind in ("oauth2", "openIdConnect"):
        hint = gettext("an access token, without the word Bearer")
        proof.notes.append(
            gettext(
                "Signs in with OAuth 2, which is not done here: enter an access token, and a"
                " new one when it expires."
            )
        )
    else:
        shown = " ".join(filter(None, (kind, way, str(where or ""))))[:100] or "?"
        words = gettext("It wants a proof that cannot be given here: “%(scheme)s” (%(kind)s).")
        raise _Unfit(words % {"scheme": name[:60], "kind": shown})
    target[key] = value
    proof.secrets.append(SecretWanted(secret, hint, value.startswith("Basic")))


def propose_secret_name(scheme: str, prefix: str = "") -> str:
    """The name that is proposed for the secret of ``scheme``."""
    name = f"{to_snake_case(prefix)}_{to_snake_case(scheme) or 'key'}".strip("_")
    return (name if re.match("[a-z]", name) else f"key_{name}")[:SECRET_LIMIT]
