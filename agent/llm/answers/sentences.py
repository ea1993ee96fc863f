"""Where sentences end, and a cut answer ended at one. Pure; linear time."""

import re
from collections import deque

from agent.llm.answers.code_spans import open_fence

QUOTES = r"[”’\"'」』）)】》\]*_~]{0,8}"
ENDS_SENTENCE = re.compile(rf"[。！？!?….]{QUOTES}\Z")
"""Matches in a text that ends with a sentence."""
#: A dot after a digit may be the number of a list or, at the end of what was cut, a decimal point.
_SENTENCE_END = re.compile(rf"(?:[。！？!?…]|(?<!\d)\.(?=[^\w.]|\Z)){QUOTES}")
_UNFINISHED_LINE = re.compile(r"[：:，,、；;（(]\Z|\A[ \t]*(?:#|\Z|\d+[.)、]?\Z|[-*+]\Z)")
CUT = "…"


def end_at_sentence(text: str) -> str:
    """``text``, which a limit cut, up to its last full sentence or full line.

    Closing quotes and brackets belong to the sentence. Headings and lines that announce something
    end nothing. In code the last full line counts, and the fence is closed. Where that would lose
    more than half, all of ``text`` stays, with an ellipsis.
    """
    text = text.rstrip()
    if fence := open_fence(text):
        return _close_fence(text, *fence)
    end = _last_end(text)
    if end == len(text):
        return text
    if 2 * end < len(text):
        return text if text.endswith(CUT) else text + CUT
    return text[:end].rstrip()


def _last_end(text: str) -> int:
    sentences = deque(_SENTENCE_END.finditer(text), maxlen=1)
    sentence = sentences[0].end() if sentences else 0
    line = text.rfind("\n")
    while line > sentence:
        before = text.rfind("\n", 0, line)
        if not _UNFINISHED_LINE.search(text[before + 1 : line].rstrip()):
            return line
        line = before
    return sentence


def _close_fence(text: str, start: int, mark: str) -> str:
    head = text.rpartition("\n")[0]
    if len(head) > start and 2 * len(head) >= len(text):
        text = head.rstrip()
    return f"{text}\n{mark}"
