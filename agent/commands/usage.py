"""How commands are written, and what they do, in words."""

from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_noop as _

from agent.domain.commands import CommandName

#: What stands behind the name, and what the command does.
_USAGE = {
    CommandName.HELP: ("", _("this list")),
    CommandName.RESET: ("", _("a fresh start; nothing is deleted")),
    CommandName.STOP: ("", _("stop the answer under way")),
    CommandName.STATUS: ("", _("who answers here, and what is left for you")),
    CommandName.WHY: ("", _("quoting a message: why I answered it, or did not")),
    CommandName.ON: ("", _("speak in this chat again")),
    CommandName.OFF: (_("[30m]"), _("be silent in this chat, for some time or until told again")),
    CommandName.ALLOW: (_("ID or @"), _("answer these people here")),
    CommandName.DENY: (_("ID or @"), _("do not answer these people here")),
    CommandName.PERSONA: (_("[name]"), _("show or choose who answers here")),
    CommandName.MODEL: (_("[name]"), _("show or choose the model that is asked first here")),
    CommandName.BUDGET: (_("[tokens]"), _("show what is spent, or bound the tokens a day here")),
}


def describe_command(name: CommandName, prefix: str) -> str:
    """``/deny ID or @: do not answer these people here``."""
    does = gettext(_USAGE[name][1])
    return gettext("%(command)s: %(does)s") % {"command": _written(name, prefix), "does": does}


def tell_usage(name: CommandName, prefix: str) -> str:
    """How a command is written, for somebody who wrote it in another way."""
    return gettext("It is written like this: %(command)s") % {"command": _written(name, prefix)}


def tell_end(end: datetime | None) -> str:
    """When something ends by itself; "" for what does not."""
    if end is None:
        return ""
    at = timezone.localtime(end).strftime("%m-%d %H:%M")
    return gettext("It ends by itself at %(time)s.") % {"time": at}


def _written(name: CommandName, prefix: str) -> str:
    is_chinese = (get_language() or "").startswith("zh")
    arguments = _USAGE[name][0]
    word = name.chinese if is_chinese else name.english
    return f"{prefix}{word} {gettext(arguments) if arguments else ''}".rstrip()


def join_words(words: Iterable[str]) -> str:
    """A list as one reads it in the present language."""
    return gettext(", ").join(words)
