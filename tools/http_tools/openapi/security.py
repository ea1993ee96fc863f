"""The authentication of an OpenAPI document, as headers and query entries with secrets. Pure."""

import re
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
    """What is sent to authenticate; ``problem`` is the reason why that is impossible, or ""."""

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
    tried = []
    for way in ways[:20]:
        tried.append(made := CallCredentials())
        for name in way:
            made.problem = made.problem or _add(made, name, _scheme(document, name), prefix)
    return next((found for found in tried if not found.problem), tried[0])


def _scheme(document: dict[str, Any], name: str) -> dict[str, Any]:
    components = document.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    if not isinstance(schemes, dict):
        return {}
    try:
        found = ReferenceResolver(document).follow(schemes.get(name))
    except BrokenReferenceError:
        return {}
    return found if isinstance(found, dict) else {}


def _add(made: CallCredentials, name: str, scheme: dict[str, Any], prefix: str) -> str:
    """Add one scheme to what is sent; returns why that cannot be done, or ""."""
    secret_name = propose_secret_name(name, prefix)
    place, key, value = made.headers, "Authorization", f"Bearer {{secret:{secret_name}}}"
    kind, way = str(scheme.get("type") or ""), str(scheme.get("scheme") or "").lower()
    match kind, way:
        case "apiKey", _ if scheme.get("in") in ("header", "query") and isinstance(
            scheme.get("name"), str
        ):
            place = made.headers if scheme["in"] == "header" else made.query
            key, value = scheme["name"], f"{{secret:{secret_name}}}"
            hint = gettext("the API key")
        case "http", "bearer":
            hint = gettext("the access token, without the word Bearer")
        case "http", "basic":
            value = f"Basic {{secret:{secret_name}}}"
            hint = gettext("user name and password as user:password")
        case (("oauth2" | "openIdConnect"), _):
            hint = gettext("an access token, without the word Bearer")
            made.notes.append(
                gettext(
                    "Signs in with OAuth 2, which is not done here: enter an access token, and a"
                    " new one when it expires."
                )
            )
        case _:
            shown = " ".join(filter(None, (kind, way, str(scheme.get("in") or ""))))[:100] or "?"
            words = gettext("It wants a proof that cannot be given here: “%(scheme)s” (%(kind)s).")
            return words % {"scheme": name[:60], "kind": shown}
    place[key] = value
    is_pair = (kind, way) == ("http", "basic")
    made.secrets.append(SecretWanted(secret_name, name[:100], hint, is_pair))
    return ""


def propose_secret_name(scheme: str, prefix: str = "") -> str:
    """The name that is proposed for the secret of ``scheme``."""
    name = f"{to_snake_case(prefix)}_{to_snake_case(scheme) or 'key'}".strip("_")
    return (name if re.match("[a-z]", name) else f"key_{name}")[:SECRET_LIMIT]
