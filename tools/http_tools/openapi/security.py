"""How an OpenAPI document wants calls to prove who makes them, as headers and query entries with
secrets. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext

from tools.http_tools.openapi.operations import Operation, to_snake_case
from tools.http_tools.openapi.schemas import BrokenReferenceError, ReferenceResolver

SECRET_LIMIT = 64


@dataclass(frozen=True, slots=True)
class SecretWanted:
    """A secret that calls carry. ``is_pair`` is one that is entered as ``user:password`` and kept
    in Base64."""

    name: str
    scheme: str
    hint: str
    is_pair: bool = False


@dataclass(slots=True)
class CallCredentials:
    """What is sent along to prove who calls; ``problem`` says why that cannot be done, "" where it
    can."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    secrets: list[SecretWanted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""


def find_credentials(
    document: dict[str, Any], operation: Operation, prefix: str = ""
) -> CallCredentials:
    """The first of the ways that the document names and that can be gone; none where calls need to
    prove nothing."""
    asked = operation.parts.get("security", document.get("security"))
    ways = [way for way in asked if isinstance(way, dict)] if isinstance(asked, list) else []
    if not ways or {} in ways:
        return CallCredentials()
    tried = [_way(document, way, prefix) for way in ways[:20]]
    return next((found for found in tried if not found.problem), tried[0])


def _way(document: dict[str, Any], way: dict[str, Any], prefix: str) -> CallCredentials:
    made = CallCredentials()
    for name in way:
        made.problem = made.problem or _add(made, name, _scheme(document, name), prefix)
    return made


def _scheme(document: dict[str, Any], name: str) -> dict[str, Any]:
    components = document.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    try:
        found = (
            ReferenceResolver(document).followed(schemes.get(name))
            if isinstance(schemes, dict)
            else None
        )
    except BrokenReferenceError:
        found = None
    return found if isinstance(found, dict) else {}


def _add(made: CallCredentials, name: str, scheme: dict[str, Any], prefix: str) -> str:
    """Add one scheme to what is sent; returns why that cannot be done, or ""."""
    secret = f"{{secret:{propose_secret_name(name, prefix)}}}"
    match str(scheme.get("type") or ""), str(scheme.get("scheme") or "").lower():
        case "apiKey", _ if scheme.get("in") in ("header", "query") and isinstance(
            scheme.get("name"), str
        ):
            place = made.headers if scheme["in"] == "header" else made.query
            place[scheme["name"]] = secret
            made.secrets.append(_wanted(name, prefix, gettext("the API key")))
        case "http", "bearer":
            made.headers["Authorization"] = f"Bearer {secret}"
            made.secrets.append(
                _wanted(name, prefix, gettext("the access token, without the word Bearer"))
            )
        case "http", "basic":
            made.headers["Authorization"] = f"Basic {secret}"
            made.secrets.append(
                _wanted(
                    name, prefix, gettext("user name and password as user:password"), is_pair=True
                )
            )
        case (("oauth2" | "openIdConnect"), _):
            made.headers["Authorization"] = f"Bearer {secret}"
            made.secrets.append(
                _wanted(name, prefix, gettext("an access token, without the word Bearer"))
            )
            made.notes.append(
                gettext(
                    "Signs in with OAuth 2, which is not done here: enter an access token, and a new one when it expires."
                )
            )
        case kind, way:
            shown = " ".join(filter(None, (kind, way, str(scheme.get("in") or ""))))[:100] or "?"
            return gettext(
                "It wants a proof that cannot be given here: “%(scheme)s” (%(kind)s)."
            ) % {
                "scheme": name[:60],
                "kind": shown,
            }
    return ""


def _wanted(scheme: str, prefix: str, hint: str, *, is_pair: bool = False) -> SecretWanted:
    return SecretWanted(propose_secret_name(scheme, prefix), scheme[:100], hint, is_pair)


def propose_secret_name(scheme: str, prefix: str = "") -> str:
    """The name that is proposed for the secret of ``scheme``."""
    name = f"{to_snake_case(prefix)}_{to_snake_case(scheme) or 'key'}".strip("_")
    return (name if re.match("[a-z]", name) else f"key_{name}")[:SECRET_LIMIT]


def wanted_secrets(proofs: list[CallCredentials]) -> Iterator[SecretWanted]:
    """Each secret of ``proofs`` once, in order."""
    seen: set[str] = set()
    for wanted in (wanted for made in proofs for wanted in made.secrets):
        if wanted.name not in seen:
            seen.add(wanted.name)
            yield wanted
