"""The other chats that a tool may send to, and for whom, as its row lists them. Pure.

::

    group:123456 owners
    private:20002 everyone
    group:777 30003 30004
"""

import re
from dataclasses import dataclass

from django.utils.translation import gettext

EVERYONE, OWNERS = "everyone", "owners"
_CHAT = re.compile(r"(?:onebot:)?((?:group|private):[\w.@-]{1,64})", re.ASCII)
_PERSON = re.compile(r"(?:onebot:)?[\w.@-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class OtherChat:
    """One chat, as ``kind:peer``, and who may have something sent there; owners always may."""

    key: str
    callers: frozenset[str]

    def is_for(self, user_id: str, *, is_owner: bool) -> bool:
        return is_owner or EVERYONE in self.callers or (bool(user_id) and user_id in self.callers)


def parse_other_chats(text: str) -> tuple[OtherChat, ...]:
    """What ``text`` lists; lines that name no chat, or nobody, are left out."""
    found = []
    for line in text.splitlines():
        chat, *callers = line.replace(",", " ").replace("，", " ").split() or [""]
        if (match := _CHAT.fullmatch(chat)) and callers:
            ids = frozenset(one.rpartition(":")[2] for one in callers)
            found.append(OtherChat(match[1], ids))
    return tuple(found)


def check_other_chats(text: str) -> list[str]:
    """A sentence for each line that cannot be meant."""
    problems = []
    for line in filter(None, map(str.strip, text.splitlines())):
        chat, *callers = line.replace(",", " ").replace("，", " ").split()
        if not _CHAT.fullmatch(chat):
            problems.append(
                gettext("“%(chat)s” is neither group:NUMBER nor private:NUMBER.")
                % {"chat": chat[:64]}
            )
        elif not callers:
            problems.append(
                gettext("For %(chat)s nobody is named: owners, everyone, or ids of people.")
                % {"chat": chat[:64]}
            )
        elif wrong := [one for one in callers if not _PERSON.fullmatch(one)]:
            problems.append(gettext("“%(id)s” is not an id.") % {"id": wrong[0][:64]})
    return problems
