"""The marks by which a message is known again wherever it turns up: in requests, answers, tool
calls and rows."""

import re
from dataclasses import dataclass

_MARK = re.compile(r"\[\[(group|private):(\d+)\.(\d+)\.(\w+)\]\]")
_TROUBLE = re.compile(r"([a-z0-9]+)_(\d+)\Z")

#: Stories of a model in good health: what it does before it gives its final answer.
STORIES = ("plain", "tool", "send", "both", "long", "command")
#: Messages that the answer of a long story is sent in.
PARTS = 3
#: Characters of one message, as the row that the chaos command makes has it.
PART_CHARS = 200
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


def saying(mark: Mark) -> str:
    """What a person says: of a command, one that only owners may give."""
    return f"/allow {mark}" if mark.story == "command" else str(mark)


def answer(mark: Mark) -> str:
    """The final text about ``mark``."""
    return f"re {mark}"


def part(mark: Mark, number: int) -> str:
    """The beginning of a later part of a long answer about ``mark``, from 2."""
    return f"part {number} {mark}"


def whole_answer(mark: Mark) -> str:
    """What the model says about ``mark`` at last: of a long story :data:`PARTS` paragraphs, each
    of which fills a message."""
    if mark.story != "long":
        return answer(mark)
    heads = [answer(mark), *(part(mark, number) for number in range(2, PARTS + 1))]
    return "\n\n".join(f"{head} ".ljust(PART_CHARS - 20, ".") for head in heads)


def by_hand(mark: Mark) -> str:
    """What an operator writes; ``mark`` says where."""
    return f"hand {mark}"


def announcement(mark: Mark) -> str:
    """What ``send_message`` says about ``mark``."""
    return f"wait {mark}"
