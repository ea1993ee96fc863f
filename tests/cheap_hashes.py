"""The product's settings with a hash that costs nothing, for servers whose tests are not about
passwords."""

from frostproject.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
