"""The requirements in a plugin's manifest, and whether they are met."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from tools.models import Plugin
from tools.plugin_sdk import SDK_VERSION
from tools.plugins.admin.facts import escape_plugin_text, manifest_of
from tools.plugins.manifest import HOST_VERSION, parse_requirement

#: Packages that a page shows.
MAX_REQUIREMENTS = 50


@dataclass(frozen=True, slots=True)
class RequirementStatus:
    """One thing that a plugin needs: ``found`` is what is there of it, ``is_met`` whether that will
    do."""

    what: str
    found: str
    is_met: bool


def list_requirements(plugin: Plugin) -> list[RequirementStatus]:
    """The versions and the Python packages that the manifest requires."""
    manifest = manifest_of(plugin)
    listed = manifest.get("dependencies")
    needs = [
        *_versions(manifest),
        *_packages(listed[:MAX_REQUIREMENTS] if isinstance(listed, list) else []),
    ]
    return [
        RequirementStatus(
            escape_plugin_text(need.what, 200), escape_plugin_text(need.found, 40), need.is_met
        )
        for need in needs
    ]


def _versions(manifest: dict[str, Any]) -> Iterator[RequirementStatus]:
    if (python := manifest.get("python")) and isinstance(python, str):
        here = platform.python_version()
        yield RequirementStatus(f"Python {python}", here, _fits(here, python))
    for name, label, here in (
        ("host_application", "MaiBot", HOST_VERSION),
        ("sdk", "SDK", SDK_VERSION),
    ):
        bounds = manifest.get(name)
        if isinstance(bounds, dict):
            wanted = ",".join(
                f"{sign}{bound}"
                for sign, word in ((">=", "min"), ("<=", "max"))
                if (bound := bounds.get(f"{word}_version") or bounds.get(word))
            )
            yield RequirementStatus(f"{label} {wanted}".strip(), here, _fits(here, wanted))


def _packages(listed: list[Any]) -> Iterator[RequirementStatus]:
    for given in listed:
        try:
            wanted = Requirement(parse_requirement(given))
        except ValueError:
            yield RequirementStatus(str(given), "", is_met=False)
            continue
        if wanted.marker is None or wanted.marker.evaluate():
            here = _installed(wanted.name)
            yield RequirementStatus(
                str(wanted), here, is_met=bool(here) and _fits(here, str(wanted.specifier))
            )


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
