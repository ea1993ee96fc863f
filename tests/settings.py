"""The settings of the suite: the product's own, read from an environment without the developer's.

pytest-django imports the settings before any conftest, so that this module and no
fixture is the place that cleans the environment.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.environment import clean_environment

_data_dir = tempfile.mkdtemp(prefix="frost-tests-")
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)
_clean = clean_environment(FROST_DATA_DIR=_data_dir, DJANGO_SETTINGS_MODULE="tests.settings")
os.environ.clear()
os.environ.update(_clean)
if sys.dont_write_bytecode:
    # Whoever wants none beside the code has it kept with the packages: the tests start Python a
    # thousand times, and half of each start would be compiling.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.pycache_prefix = sys.pycache_prefix or str(Path(sys.prefix, "compiled"))
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

from frostproject.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher"
]  # the real one takes 0.3 s a login, by design
# Files are looked for when they are asked for. Otherwise each test client lists them all anew.
WHITENOISE_AUTOREFRESH = True
