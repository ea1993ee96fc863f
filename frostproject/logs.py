"""Log lines without secrets, whoever wrote them."""

import logging
import re

from django.conf import settings

BLOT = "***"
#: Settings that hold a secret; none of their values is ever printed.
SECRETS = (
    "SECRET_KEY",
    "UPSTREAM_API_KEY",
    "CODER_API_KEY",
    "ONEBOT_ACCESS_TOKEN",
    "HTTP_API_TOKEN",
    "MCP_SERVER_TOKEN",
    "DJANGO_SUPERUSER_PASSWORD",
)
#: Tokens in addresses: those that were wrong are nobody's business either.
IN_ADDRESS = re.compile(r"(?i)(access_token=)[^&\s\"']+")
#: A secret this short would blot out ordinary words.
SHORTEST = 4


class RedactingFormatter(logging.Formatter):
    """The usual line, traceback included, with every secret of this installation blotted out."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def redact(text: str) -> str:
    for name in SECRETS:
        secret = getattr(settings, name)
        if len(secret) >= SHORTEST and secret in text:
            text = text.replace(secret, BLOT)
    return IN_ADDRESS.sub(rf"\g<1>{BLOT}", text)
