"""What a plugin's manifest says that it needs, and whether that is there."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from tools.admin.plugins.facts import harmless, manifest_of
from tools.models import Plugin
from tools.plugin_runtime.needs import HOST_VERSION, requirement_of
from tools.plugin_sdk import SDK_VERSION

#: Packages that a page shows.
MOST = 50


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a plugin needs: ``found`` is what is there of it, ``is_met`` whether that will do."""

    what: str
    found: str
    is_met: bool


def needs_of(plugin: Plugin) -> list[Need]:
    """The versions and the Python packages that the manifest asks for."""
    manifest = manifest_of(plugin)
    listed = manifest.get("dependencies")
    needs = [*_versions(manifest), *_packages(listed[:MOST] if isinstance(listed, list) else [])]
    return [Need(harmless(need.what, 200), harmless(need.found, 40), need.is_met) for need in needs]


def _versions(manifest: dict[str, Any]) -> Iterator[Need]:
    if (python := manifest.get("python")) and isinstance(python, str):
        here = platform.python_version()
        yield Need(f"Python {python}", here, _fits(here, python))
    for name, label, here in (("host_application", "MaiBot", HOST_VERSION), ("sdk", "SDK", SDK_VERSION)):
        bounds = manifest.get(name)
        if isinstance(bounds, dict):
            wanted = ",".join(
                f"{sign}{bound}"
                for sign, word in ((">=", "min"), ("<=", "max"))
                if (bound := bounds.get(f"{word}_version") or bounds.get(word))
            )
            yield Need(f"{label} {wanted}".strip(), here, _fits(here, wanted))


def _packages(listed: list[Any]) -> Iterator[Need]:
    for given in listed:
        try:
            wanted = Requirement(requirement_of(given))
        except ValueError:
            yield Need(str(given), "", is_met=False)
            continue
        if wanted.marker is None or wanted.marker.evaluate():
            here = _installed(wanted.name)
            yield Need(str(wanted), here, is_met=bool(here) and _fits(here, str(wanted.specifier)))


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _fits(here: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted).contains(Version(here), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False
