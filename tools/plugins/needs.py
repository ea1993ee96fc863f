"""What a plugin needs of the machine and of this program, and whether it is there. Nothing is ever
installed."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.utils.translation import gettext
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from tools.plugin_sdk import SDK_VERSION

HOST_VERSION = "1.2.1"
"""The MaiBot whose plugins are understood; ``host_application`` is compared with it."""


@dataclass(frozen=True, slots=True)
class PluginRequirements:
    """``host`` and ``sdk`` are the lowest and the highest version, either of which may be "";
    ``packages`` are PEP 508."""

    python: str
    host: tuple[str, str]
    sdk: tuple[str, str]
    packages: tuple[str, ...]


def unmet_requirements(needs: PluginRequirements) -> Iterator[str]:
    """A translated line for everything that is not there."""
    yield from _python(needs.python)
    yield from _range("host_application", needs.host, HOST_VERSION)
    yield from _range("sdk", needs.sdk, SDK_VERSION)
    for each in needs.packages:
        yield from _package(Requirement(each))


def parse_requirement(given: Any) -> str:
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


def _python(wanted: str) -> Iterator[str]:
    here = platform.python_version()
    try:
        if not SpecifierSet(wanted).contains(here, prereleases=True):
            yield gettext("python: %(wanted)s is needed, and %(here)s is here") % {
                "wanted": wanted,
                "here": here,
            }
    except InvalidSpecifier:
        yield gettext("python: should be like >=3.11")


def _range(field: str, bounds: tuple[str, str], here: str) -> Iterator[str]:
    try:
        low, high = (Version(bound) if bound else None for bound in bounds)
    except InvalidVersion as error:
        yield gettext("%(field)s: should be versions: %(reason)s") % {
            "field": field,
            "reason": error,
        }
        return
    if (low and Version(here) < low) or (high and Version(here) > high):
        wanted = " - ".join(bound or "…" for bound in bounds)
        yield gettext("%(field)s: %(wanted)s is needed, and %(here)s is here") % {
            "field": field,
            "wanted": wanted,
            "here": here,
        }


def _package(wanted: Requirement) -> Iterator[str]:
    if wanted.marker is not None and not wanted.marker.evaluate():
        return
    try:
        here = version(wanted.name)
    except PackageNotFoundError:
        yield gettext("dependencies: the Python package %(wanted)s is not installed") % {
            "wanted": wanted
        }
        return
    if not wanted.specifier.contains(here, prereleases=True):
        yield gettext("dependencies: %(wanted)s is needed, and %(here)s is installed") % {
            "wanted": wanted,
            "here": here,
        }
