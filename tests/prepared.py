"""Data folders as a first start leaves them: made once, and copied for each server whose first
start is not the subject."""

import atexit
import functools
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests import zygote
from tests.environment import clean_environment

_PREPARE = """
import os, django
os.umask(0o077)
django.setup()
from frostproject.start import bootstrap
bootstrap.prepare_installation()
"""
#: What decides what a first start leaves: how passwords are hashed, in which language tools
#: describe themselves, the account.
_DECISIVE = (
    "DJANGO_SETTINGS_MODULE",
    "LANGUAGE_CODE",
    "DJANGO_SUPERUSER_USERNAME",
    "DJANGO_SUPERUSER_PASSWORD",
)
#: What each installation makes for itself.
_OWN = shutil.ignore_patterns("secret_key", "*_token", "*.lock")


def fill(folder: Path, env: Mapping[str, str]) -> None:
    """Have a folder that is not there be as a first start with ``env`` on SQLite leaves it, but
    without keys and tokens."""
    if not folder.exists() and not env["DATABASE_URL"]:
        decisive = tuple(env[name] for name in _DECISIVE)
        shutil.copytree(_prepared(decisive), folder, ignore=_OWN)


@functools.cache
def _prepared(decisive: tuple[str, ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="frost-prepared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    own = dict(zip(_DECISIVE, decisive, strict=True))
    own |= {"FROST_DATA_DIR": str(folder / "data"), "TEST_LIMITS": "{}"}
    zygote.run([sys.executable, "-c", _PREPARE], clean_environment(**own), check=True)
    return folder / "data"
