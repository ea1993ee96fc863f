"""A plugin's manifest, ``_manifest.json``: its identity, its requirements, and the capabilities it
requests.

The fields are those of MaiBot's manifest, version 2, and three of our own: ``python``, ``tools``
and ``config_schema``. It is read strictly, and no code of the plugin is run.

What a plugin needs of the machine and of this program, and whether it is there. Nothing is ever
installed.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal

from django.utils.translation import gettext
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
)
from pydantic_core import ErrorDetails

from tools.contract import TOOL_NAME
from tools.plugin_sdk import SDK_VERSION
from tools.plugins.capabilities import CAPABILITIES
from tools.schemas.arguments import UNUSABLE_SCHEMA, schema_messages
from tools.text.storable import make_storable

HOST_VERSION = "1.2.1"
"""The MaiBot whose plugins are understood; ``host_application`` is compared with it."""


@dataclass(frozen=True, slots=True)
class RequirementStatus:
    """One thing that a plugin needs, and what is here of it. ``problem`` is a translated line; ""
    where that will do."""

    what: str
    found: str
    problem: str = ""


def check_requirements(manifest: Mapping[str, object]) -> Iterator[RequirementStatus]:
    """The versions and the Python packages that ``manifest`` requires, whatever stands there."""
    if (python := manifest.get("python")) and isinstance(python, str):
        yield _check_python(python)
    for field, label, here in (
        ("host_application", "MaiBot", HOST_VERSION),
        ("sdk", "SDK", SDK_VERSION),
    ):
        if isinstance(bounds := _as_range(manifest.get(field)), dict):
            yield _check_range(field, label, bounds, here)
    listed = manifest.get("dependencies")
    for given in listed if isinstance(listed, list) else ():
        try:
            wanted = Requirement(parse_requirement(given))
        except ValueError as error:
            yield RequirementStatus(str(given), "", str(error))
            continue
        if wanted.marker is None or wanted.marker.evaluate():
            yield _check_package(wanted)


def parse_requirement(given: object) -> str:
    """A dependency as PEP 508 writes it, from that or from MaiBot's object. Raises ValueError for
    anything else."""
    if isinstance(given, dict):
        if given.get("type") == "plugin":
            raise ValueError(gettext("other plugins cannot be needed here: each runs by itself"))
        text = f"{given.get('name', '')}{given.get('version_spec') or ''}"
    else:
        text = given if isinstance(given, str) else ""
    try:
        return str(Requirement(text))
    except InvalidRequirement as error:
        raise ValueError(
            gettext("should be a Python package with a version: httpx>=0.27")
        ) from error


def _check_python(wanted: str) -> RequirementStatus:
    here, problem = platform.python_version(), ""
    try:
        if not SpecifierSet(wanted).contains(here, prereleases=True):
            words = gettext("python: %(wanted)s is needed, and %(here)s is here")
            problem = words % {"wanted": wanted, "here": here}
    except InvalidSpecifier:
        problem = gettext("python: should be like >=3.11")
    return RequirementStatus(f"Python {wanted}", here, problem)


def _check_range(field: str, label: str, bounds: dict[str, object], here: str) -> RequirementStatus:
    low, high = (str(bounds.get(f"{end}_version") or "") for end in ("min", "max"))
    problem = ""
    try:
        if (low and Version(here) < Version(low)) or (high and Version(here) > Version(high)):
            words = gettext("%(field)s: %(wanted)s is needed, and %(here)s is here")
            wanted = f"{low or '…'} - {high or '…'}"
            problem = words % {"field": field, "wanted": wanted, "here": here}
    except InvalidVersion as error:
        words = gettext("%(field)s: should be versions: %(reason)s")
        problem = words % {"field": field, "reason": error}
    ends = ",".join(f"{sign}{bound}" for sign, bound in ((">=", low), ("<=", high)) if bound)
    return RequirementStatus(f"{label} {ends}".strip(), here, problem)


def _check_package(wanted: Requirement) -> RequirementStatus:
    here, problem = "", ""
    try:
        here = version(wanted.name)
    except PackageNotFoundError:
        words = gettext("dependencies: the Python package %(wanted)s is not installed")
        problem = words % {"wanted": wanted}
    if here and not wanted.specifier.contains(here, prereleases=True):
        words = gettext("dependencies: %(wanted)s is needed, and %(here)s is installed")
        problem = words % {"wanted": wanted, "here": here}
    return RequirementStatus(str(wanted), here, problem)


MANIFEST = "_manifest.json"
MOST_BYTES = 256 * 1024
MOST_LINES = 30
PLUGIN_ID = r"^[a-z0-9]+(?:[.-][a-z0-9]+)+$"
VERSION = r"^(?:0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){2}$"


class ManifestError(Exception):
    """A plugin cannot be used as its manifest is; ``lines`` name every field and what is wrong with
    it, translated."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def read_manifest(folder: Path) -> "Manifest":
    """The manifest of the plugin in ``folder``, whose needs are met. Raises :class:`ManifestError`
    with everything that is wrong."""
    given = _read(folder / MANIFEST)
    try:
        found = Manifest.model_validate(given)
    except ValidationError as error:
        raise ManifestError(_lines(error.errors(include_url=False))) from error
    if lines := [need.problem for need in check_requirements(given) if need.problem]:
        raise ManifestError(lines)
    found._given = given
    return found


def _read(file: Path) -> dict[str, object]:
    """The object in ``file``."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ManifestError(
                [gettext("The manifest has more than %(most)d bytes.") % {"most": MOST_BYTES}]
            )
        found = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise ManifestError(
            [gettext("The manifest cannot be read: %(reason)s") % {"reason": error.strerror}]
        ) from error
    except (ValueError, RecursionError) as error:
        raise ManifestError(
            [gettext("The manifest is no JSON: %(reason)s") % {"reason": error}]
        ) from error
    if not isinstance(found, dict):
        raise ManifestError([gettext("The manifest is no JSON object.")])
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object without duplicate names: of two, only one would count, and it would be unclear
    which."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            gettext("%(name)s is there twice")
            % {"name": next(name for name in names if names.count(name) > 1)}
        )
    return found


# --- Its shape ------------------------------------------------------------------


def _printable(text: str) -> str:
    if all(sign.isprintable() or sign == "\n" for sign in text):
        return text
    raise ValueError(gettext("there are control characters in it"))


def _known_capability(name: str) -> str:
    if name in CAPABILITIES:
        return name
    known = ", ".join(CAPABILITIES)
    raise ValueError(
        gettext("there is no capability %(name)s; there are: %(known)s")
        % {"name": repr(name[:64]), "known": known}
    )


def check_config_schema(schema: dict[str, object]) -> dict[str, object]:
    """``schema`` itself. Raises ValueError, translated, for one that is not that of an object, or
    has a default that its property does not take."""
    if not schema:
        return schema
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(properties, dict):
        raise ValueError(gettext("should be the JSON schema of an object, with properties"))
    try:
        schema_messages(schema, {})
        wrong = [
            name
            for name, part in properties.items()
            if isinstance(part, dict)
            and "default" in part
            and schema_messages(part, part["default"])
        ]
    except UNUSABLE_SCHEMA as error:
        reason = getattr(error, "message", str(error))[:300]
        raise ValueError(
            gettext("is no valid JSON schema: %(reason)s") % {"reason": reason}
        ) from error
    if wrong:
        raise ValueError(
            gettext("the default of %(name)s is not what it takes itself") % {"name": wrong[0]}
        )
    return schema


def _different(tools: "list[_Tool]") -> "list[_Tool]":
    names = [tool.name for tool in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(gettext("there twice: %(names)s") % {"names": ", ".join(twice)})
    return tools


def _as_range(given: object) -> object:
    """MaiBot writes the bounds in two ways."""
    if not isinstance(given, dict):
        return given
    return {
        {"min": "min_version", "max": "max_version"}.get(name, name): value
        for name, value in given.items()
    }


LineText = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"\S"), AfterValidator(_printable)
]
LongText = Annotated[
    str, Field(min_length=1, max_length=2_000, pattern=r"\S"), AfterValidator(_printable)
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Author(_Part):
    name: LineText
    url: str = Field(default="", max_length=2_000)


class _Range(_Part):
    min_version: str = Field(default="", max_length=40)
    max_version: str = Field(default="", max_length=40)


class _Tool(_Part):
    name: str = Field(pattern=f"^{TOOL_NAME.pattern}$")
    description: str = Field(default="", max_length=2_000)


VersionRange = Annotated[_Range, BeforeValidator(_as_range)]


class Manifest(_Part):
    """A sound manifest."""

    manifest_version: Literal[2]
    id: str = Field(pattern=PLUGIN_ID, max_length=128)
    version: str = Field(pattern=VERSION)
    name: LineText
    description: LongText
    author: Annotated[
        _Author, BeforeValidator(lambda given: {"name": given} if isinstance(given, str) else given)
    ]
    license: str = Field(default="", max_length=200)
    capabilities: list[Annotated[str, AfterValidator(_known_capability)]] = []
    tools: Annotated[list[_Tool], Field(max_length=200), AfterValidator(_different)] = []
    config_schema: Annotated[dict[str, object], AfterValidator(check_config_schema)] = {}
    python: str = Field(default="", max_length=200)
    host_application: VersionRange = _Range()
    sdk: VersionRange = _Range()
    dependencies: list[Annotated[str, BeforeValidator(parse_requirement)]] = []
    # What MaiBot's manifests have besides; it is shown and changes nothing here.
    urls: dict[str, object] = {}
    i18n: dict[str, object] = {}
    display: dict[str, object] = {}
    plugin_type: str = ""
    changelog: str | list[object] | dict[str, object] = ""
    llm_providers: Annotated[list[object], Field(max_length=0)] = []

    _given: dict[str, object] = PrivateAttr(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The whole file, as a row can keep it."""
        return dict(make_storable(self._given))


# --- What is wrong with it ------------------------------------------------------


def _lines(errors: list[ErrorDetails]) -> list[str]:
    lines = [f"{_path_of(error)}: {_words(error)}" for error in errors]
    rest = len(lines) - MOST_LINES
    return (
        lines
        if rest <= 0
        else [*lines[:MOST_LINES], gettext("… and %(number)d more") % {"number": rest}]
    )


def _path_of(error: ErrorDetails) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    short = path.removeprefix(".")[:200]
    return short if path.isprintable() else short.encode("unicode_escape").decode()


def _words(error: ErrorDetails) -> str:
    """What is wrong with one field, for the author who can fix it."""
    hints = dict(_hints())
    match error["type"]:
        case "missing":
            return gettext("is missing")
        case "extra_forbidden":
            return gettext("is not known here; the fields are: %(names)s") % {
                "names": ", ".join(_siblings(error["loc"]))
            }
        case "value_error":
            return str(error["ctx"]["error"]) if "ctx" in error else error["msg"]
        case "string_type":
            return gettext("should be a text")
        case "dict_type" | "model_type" | "model_attributes_type":
            return gettext("should be an object")
        case "list_type":
            return gettext("should be a list")
        case "string_too_long" | "too_long":
            return gettext("is too long; %(most)d is the most") % {
                "most": error.get("ctx", {}).get("max_length", 0)
            }
        case _:
            return hints.get(str(error["loc"][-1]), error["msg"])


def _hints() -> Iterator[tuple[str, str]]:
    yield "manifest_version", gettext("should be the number 2")
    yield (
        "id",
        gettext(
            "should be lower-case letters and digits in at least two parts, joined by . or -: "
            "com.example.weather"
        ),
    )
    yield "version", gettext("should be three numbers: 1.0.0")
    yield "name", gettext("should be a name; that of a tool has 1 to 64 of A-Z, a-z, 0-9, _ and -")
    yield "description", gettext("should say something")


def _siblings(path: tuple[int | str, ...]) -> list[str]:
    parts: dict[str, type[_Part]] = {
        "author": _Author,
        "host_application": _Range,
        "sdk": _Range,
        "tools": _Tool,
    }
    return list((parts.get(str(path[0]), Manifest) if len(path) > 1 else Manifest).model_fields)
