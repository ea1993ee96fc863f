"""The product's settings with the time limits that ``TEST_LIMITS`` names, a JSON object; see
:class:`tests.live_server.LiveServer`."""

import json
import os

from frostproject.settings import *  # noqa: F403

FROST_LIMITS = json.loads(os.environ["TEST_LIMITS"])
