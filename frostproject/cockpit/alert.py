"""One thing that needs somebody, and what can be done about it in its row."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from frostproject.cockpit.viewer import Viewer
from tools.text import readable

BAD, NOTABLE = "bad", "notable"


@dataclass(frozen=True, slots=True)
class AlertAct:
    """What can be done about an alert in its row: a link, or a form with the values ``posted``."""

    label: str
    url: str
    posted: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that needs somebody. ``advice`` says what to do, ``url`` leads to where it is done
    ("" for nowhere); where it is to be done several times, ``others`` is another way there.

    ``facts`` are what it says, in no language: who has put an alert away is told of it again when
    they are others. What only grows meanwhile, as the use of a budget does, is none of them.

    What leaves the installation is ``plain`` where there is any, instead of ``text``: without words
    of chats, models and servers. There it is the same alert as long as ``about`` is."""

    kind: str
    text: str
    advice: str = ""
    url: str = ""
    level: str = NOTABLE
    #: A text and its address.
    others: tuple[str, str] = ("", "")
    facts: tuple[object, ...] = ()
    acts: tuple[AlertAct, ...] = ()
    about: object = ""
    plain: str = ""
    account: str = ""

    @property
    def digest(self) -> str:
        """What stands for the kind and the facts."""
        told = json.dumps([self.kind, *self.facts], default=str)
        return hashlib.sha256(told.encode()).hexdigest()


def look_at_chat(viewer: Viewer, url: str) -> Iterator[AlertAct]:
    """The way to a chat, for those who may see chats."""
    if viewer.may("agent.view_chatsession"):
        yield AlertAct(_("See the chat"), url)


def moment(at: datetime | None) -> str:
    return formats.date_format(timezone.localtime(at), "m-d H:i") if at else ""


def clean(text: str) -> str:
    return readable.escape_invisible_chars(text[:400])
