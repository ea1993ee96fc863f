"""What accounts and clients are called on every page."""

from django.utils.translation import gettext

from onebot.models import Bot
from tools.text.readable import escape_invisible_chars

#: Clients by what their name holds.
CLIENTS = {
    "napcat": "NapCat",
    "llonebot": "LLBot",
    "llbot": "LLBot",
    "lagrange": "Lagrange.OneBot",
    "cqhttp": "go-cqhttp",
}
#: Characters of a client's name that a line shows.
SHOWN_CHARS = 60


def nickname_of(bot: Bot) -> str:
    """What the client says the account is called; "" where it says nothing."""
    return escape_invisible_chars(bot.nickname)


def account_words(bot: Bot) -> str:
    """An account in a sentence: its nickname if it has one, and its number."""
    nickname = nickname_of(bot)
    return f"{nickname} ({bot.self_id})" if nickname else bot.self_id


def client_words(bot: Bot) -> str:
    """The client as people call it: by what it said when it was asked, or else when it dialled
    in."""
    said = bot.client_name or bot.implementation
    name, _slash, version = said.partition("/")
    for known, words in CLIENTS.items():
        if known in name.lower():
            return escape_invisible_chars(f"{words} {version}".strip())[:SHOWN_CHARS]
    if name.lower() in ("", "onebot"):
        return gettext("a client that does not say its name")
    return escape_invisible_chars(said)[:SHOWN_CHARS]
