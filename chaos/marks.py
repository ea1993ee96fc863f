"""The marks by which a message is known again wherever it turns up: in requests, answers, tool
calls and rows."""

import re
from dataclasses import dataclass

_MARK = re.compile(r"\[\[(group|private):(\d+)\.(\d+)\.(\w+)\]\]")
_TROUBLE = re.compile(r"([a-z0-9]+)_(\d+)\Z")

#: Stories of a model in good health: what it does before it gives its final answer.
STORIES = ("plain", "tool", "send", "both")
#: What an endpoint may do to a caller. After the first, once, an answer is still due; the others
#: may cost it.
PASSING = ("500", "429", "429after", "cuthead", "cutbody", "null", "blank")
LASTING = ("hang", "garbage", "endless")


@dataclass(frozen=True, slots=True)
class Mark:
    """One message: its chat, its number in that chat, and what the model is to do about it."""

    kind: str
    peer: int
    number: int
    story: str

    def __str__(self) -> str:
        return f"[[{self.chat}.{self.number}.{self.story}]]"

    @property
    def chat(self) -> str:
        """The chat as the frame of a prompt names it."""
        return f"{self.kind}:{self.peer}"

    @property
    def id(self) -> str:
        return f"{self.chat}.{self.number}"

    @property
    def trouble(self) -> tuple[str, int]:
        """What the model's endpoint does to it and how many times; ``("", 0)`` for nothing."""
        found = _TROUBLE.match(self.story)
        return (found[1], int(found[2])) if found else ("", 0)

    @property
    def may_fail(self) -> bool:
        """Whether an apology is as good as an answer, because the model's endpoint never gave
        one."""
        name, times = self.trouble
        return bool(name) and (times > 1 or name not in PASSING)

    @property
    def calls_tool(self) -> bool:
        return self.story in ("tool", "both")

    @property
    def sends(self) -> bool:
        return self.story in ("send", "both")


def marks_in(text: str) -> list[Mark]:
    return [
        Mark(kind, int(peer), int(number), story)
        for kind, peer, number, story in _MARK.findall(text)
    ]


def mark_in(text: str) -> Mark | None:
    """The last mark in ``text``."""
    found = marks_in(text)
    return found[-1] if found else None


def answer(mark: Mark) -> str:
    """The final text about ``mark``."""
    return f"re {mark}"


def announcement(mark: Mark) -> str:
    """What ``send_message`` says about ``mark``."""
    return f"wait {mark}"
