"""How commands are written, and what they do, in words."""

from django.utils.translation import gettext
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


def describe_command(name: CommandName, prefix: str, *, is_chinese: bool) -> str:
    """``/deny ID or @: do not answer these people here``."""
    arguments, does = _USAGE[name]
    written = f"{prefix}{name.chinese if is_chinese else name.english}"
    written += f" {gettext(arguments)}" if arguments else ""
    return gettext("%(command)s: %(does)s") % {"command": written, "does": gettext(does)}


def tell_usage(name: CommandName, prefix: str) -> str:
    """How a command is written, for somebody who wrote it in another way."""
    arguments, _does = _USAGE[name]
    return gettext("It is written like this: %(command)s") % {
        "command": f"{prefix}{name.english} {gettext(arguments)}".strip()
    }
