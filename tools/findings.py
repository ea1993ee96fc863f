"""What a check finds, for *Test* on a row's page, *First steps* and ``doctor`` alike. No finding
ever holds a secret."""

from dataclasses import dataclass
from enum import StrEnum


class FindingLevel(StrEnum):
    OK = "OK"
    NOTE = "NOTE"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked item: its state, and how to fix it; ``page`` is the address in the admin where
    that is done, "" for none. ``said`` is what the other side said, as it said it."""

    level: FindingLevel
    text: str
    advice: str = ""
    page: str = ""
    said: str = ""

    @property
    def line(self) -> str:
        """The text with what was said."""
        return f"{self.text} {self.said}".strip()


def ok_finding(text: str) -> Finding:
    return Finding(FindingLevel.OK, text)


def note_finding(text: str, advice: str = "", page: str = "") -> Finding:
    return Finding(FindingLevel.NOTE, text, advice, page)


def warn_finding(text: str, advice: str, page: str = "") -> Finding:
    return Finding(FindingLevel.WARN, text, advice, page)


def fail_finding(text: str, advice: str = "", page: str = "") -> Finding:
    return Finding(FindingLevel.FAIL, text, advice, page)
