"""What all acts in chats have in common: who may do what, and how they end."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpRequest

from agent.models import ChatSession, Message
from tools.admin.record_pages import author_of

SPEAK, CHANGE, MANNERS = (
    "agent.speak_in_chat",
    "agent.change_chatsession",
    "agent.change_manners",
)


class ActRefused(Exception):  # noqa: N818 - the word says what happened
    """An act that is not done, and why, in words for the one who asked: nothing was changed."""


@dataclass(frozen=True, slots=True)
class ActDone:
    """What was done, in words, and what the running server is still asked for. ``then`` is called
    once the act is committed, and may say what came of it instead."""

    words: str
    then: "Callable[[], ActDone | None] | None" = None
    #: Where on the page the reader goes on.
    anchor: str = "acts"
    warning: str = ""
    #: Why nothing was done.
    refusal: str = ""
    #: The act that takes it back, "" where none does, and what that one is given.
    undo: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class ActCall:
    """An act that somebody asks for: in a chat that he may reach, perhaps on one message of it."""

    request: HttpRequest
    session: ChatSession
    message: Message | None = None

    @property
    def author(self) -> User:
        return author_of(self.request)

    def posted(self, name: str) -> str:
        """A value of the form, "" where it is missing."""
        return self.request.POST.get(name, "")


@dataclass(frozen=True, slots=True)
class Act:
    """``perform`` runs in a transaction; ``permissions``: any of them is enough."""

    perform: Callable[[ActCall], ActDone]
    permissions: tuple[str, ...] = (SPEAK,)
    on_message: bool = False


def may(request: HttpRequest, act: Act) -> bool:
    return any(request.user.has_perm(permission) for permission in act.permissions)


#: The id of a person. No leading zero: clients read "0" as everyone.
PERSON_ID = re.compile(r"[1-9]\d{0,18}|(?=.*\d)(?=.*[a-zA-Z])[\w-]{1,64}", re.ASCII)
