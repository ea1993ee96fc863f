"""Which programs MCP servers may be started with, and who may set them up.

A program runs as the system user of this server. So three conditions must hold: the environment
lists it (``MCP_ALLOWED_COMMANDS``), which no page can change; a superuser saves it; and that
superuser was given the permission explicitly. Otherwise every superuser would have it by accident.

The program is run as written, without a shell. Only a bare name is looked up, in the ``PATH`` of
the server. Variables that could redirect this are refused.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Permission
from django.db.models import Q
from django.utils.translation import gettext as _

PERMISSION = "tools.run_commands"
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSENDABLE_VALUE = re.compile(r"[\x00\ud800-\udfff]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEADS_ELSEWHERE = re.compile(
    r"PATH|IFS|ENV|BASH_ENV|BASH_FUNC.*|(LD|DYLD)_.*|GCONV_PATH|NODE_(OPTIONS|PATH)|PYTHON(PATH|HOME|STARTUP|USERBASE|BREAKPOINT)"
    r"|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|DOTNET_STARTUP_HOOKS",
    re.IGNORECASE,
)
"""Names of variables that decide which program, or which code inside it, is run."""


def check_command(command: str, arguments: Sequence[Any]) -> str:
    """Why this program may not be run, as a translated sentence with what to do; "" when it may.

    A bare name in ``MCP_ALLOWED_COMMANDS`` allows exactly that bare name, an absolute path exactly
    that path. :func:`check_program_exists` checks whether it exists.
    """
    if not command:
        return _("Name the program to run.")
    if _UNSENDABLE.search(command) or any(
        not isinstance(part, str) or _UNSENDABLE.search(part) for part in arguments
    ):
        return _(
            "The program and its arguments are texts without control characters and line breaks."
        )
    if "/" in command and not command.startswith("/"):
        return _("Write the name of the program alone, or its absolute path.")
    return "" if command in settings.MCP_ALLOWED_COMMANDS else _not_allowed(command)


def _not_allowed(command: str) -> str:
    if "," in command or "，" in command:
        return _("A program with a comma in its name cannot be allowed.")
    line = "MCP_ALLOWED_COMMANDS=" + ",".join([*settings.MCP_ALLOWED_COMMANDS, command])
    words = _(
        "“%(command)s” is not among the programs that may be run. To allow it, put this into .env "
        "and restart: %(line)s"
    )
    return words % {"command": command, "line": line}


def check_program_exists(command: str) -> str:
    """Why there is nothing to run under the name ``command`` on this machine; "" when there is."""
    if shutil.which(command):
        return ""
    return _("The program “%s” is not on this machine, or not in the PATH of the server.") % command


def check_environment(environment: Mapping[str, str]) -> str:
    """Why a program may not be given these variables, as a translated sentence; "" when it may.

    ``PATH`` and its like are refused: they would make another program of an allowed one.
    """
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or _UNSENDABLE_VALUE.search(value):
            return _("“%s” is not a variable that can be set.") % _UNSENDABLE.sub("�", name)[:100]
        if _LEADS_ELSEWHERE.fullmatch(name):
            return _("“%s” may not be set: it changes which program, or which code, is run.") % name
    return ""


def may_run_commands(user: Any) -> bool:
    """Whether ``user`` may set up MCP servers that are programs.

    True for a superuser who was given the permission explicitly, by the account or one of its
    groups. The implicit permissions of superusers do not count here.
    """
    if not (user.is_active and user.is_superuser):
        return False
    given = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return given.filter(content_type__app_label="tools", codename="run_commands").exists()
