"""What a client says of itself and of its account.

Rules: https://github.com/botuniverse/onebot-11/blob/master/api/public.md (get_login_info,
get_version_info). Pure.
"""

from typing import Any

from onebot.protocol.actions import ActionResponse
from tools.text.storable import make_storable

LOGIN, VERSION = "get_login_info", "get_version_info"
#: Characters that are kept of the name of an account, and of a client.
NICKNAME_LIMIT, CLIENT_LIMIT = 100, 200


def parse_nickname(response: ActionResponse | None) -> str:
    """What the account is called; "" where the client did not say."""
    return _name(response, "nickname")[:NICKNAME_LIMIT]


def parse_client_name(response: ActionResponse | None) -> str:
    """``NapCat.Onebot/4.8.0``; "" where the client did not say."""
    parts = (_name(response, "app_name"), _name(response, "app_version"))
    return "/".join(filter(None, parts))[:CLIENT_LIMIT] if parts[0] else ""


def _name(response: ActionResponse | None, name: str) -> str:
    """One line of text, as far as a database can hold it."""
    said: Any = response.data if response is not None and response.is_success else None
    words = said.get(name) if isinstance(said, dict) else ""
    text = words[: 2 * CLIENT_LIMIT] if isinstance(words, str) else ""
    return " ".join(str(make_storable(text)).split())
