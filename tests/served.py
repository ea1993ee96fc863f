"""The settings of servers that tests start: the product's own, but passwords are hashed at no cost,
and the time limits are those that ``TEST_LIMITS`` names, a JSON object; see
:class:`tests.live_server.LiveServer`."""

import json
import os

from frostproject.settings import *  # noqa: F403

#: The real one takes 0.3 s of a core at each sign-in, by design.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
FROST_LIMITS = json.loads(os.environ["TEST_LIMITS"])
