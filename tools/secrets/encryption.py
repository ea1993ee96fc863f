"""Secrets at rest: encrypted with a key that is derived from the installation's secret key.

The database alone, or a copy of it, is not enough to read them. When the secret key is lost or
changed they cannot be read, and have to be entered again.
"""

import base64
from functools import cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PURPOSE = b"frostagent secrets v1"


class DecryptionError(Exception):
    """What was sealed cannot be read with this installation's secret key."""


def encrypt(text: str) -> str:
    """``text`` in a form that may be stored; ``decrypt`` gives it back."""
    return _cipher(settings.SECRET_KEY).encrypt(text.encode()).decode()


def decrypt(sealed: str) -> str:
    """What was sealed. Raises :class:`DecryptionError` when it was sealed under another key, or
    changed since."""
    try:
        return _cipher(settings.SECRET_KEY).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise DecryptionError("sealed under another secret key") from error


@cache
def _cipher(secret_key: str) -> Fernet:
    derived = HKDF(SHA256(), length=32, salt=None, info=PURPOSE).derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
