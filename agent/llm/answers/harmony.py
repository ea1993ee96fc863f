"""OpenAI's harmony format, where a server leaves its marks in the text of an answer. Pure.

Source: github.com/openai/harmony, docs/format.md. ``analysis`` is what the model thinks, ``final``
the answer, ``commentary`` a word to the user, or with ``to=functions.…`` a tool call.
"""

import re

from agent.llm.answers.code_spans import prose_parts

_HEADER = re.compile(
    r"(?=<\|start\|>|<\|channel\|>)(?:<\|start\|>\s{0,9}assistant(?P<role>[^<]{0,200}))?"
    r"(?:<\|channel\|>\s{0,9}(?P<channel>\w{0,20})(?P<rest>[^<]{0,200}))?"
    r"(?:<\|constrain\|>[^<]{0,100})?(?:<\|message\|>|(?:(?<=analysis)|(?<=final))\Z)"
)
_END = re.compile(r"<\|(?:end|return|call)\|>")
_SHOWN = {"final", "commentary", None}
#: What is left of the marks when a server drops the special tokens and keeps their words.
_THINKS, _SAYS = "analysis", "assistantfinal"


def split_channels(text: str) -> tuple[str, list[str]]:
    """``text`` without what its channels hide, and that, in order.

    Calls stay as they are, for :mod:`agent.llm.answers.text_calls`. What stands before the first
    header and is closed by ``<|end|>`` are thoughts whose header was in the prompt. A header in
    code is prose, and so is all after it.
    """
    if text.startswith(_THINKS) and _SAYS in text:
        thought, _, answer = text.removeprefix(_THINKS).rpartition(_SAYS)
        return answer, [thought]
    if "<|channel|>" not in text:
        return text, []
    headers = list(_HEADER.finditer(text))
    if not headers or not _is_prose(text, headers[0].start()):
        return text, []
    lead = text[: headers[0].start()]
    ended = _END.search(lead)
    said = [] if ended else [lead]
    thoughts = [lead[: ended.start()]] if ended else []
    starts = [*(header.start() for header in headers[1:]), len(text)]
    for header, limit in zip(headers, starts, strict=True):
        end = _END.search(text, header.end(), limit)
        body = text[header.end() : end.start() if end else limit]
        if _calls(header):
            said.append(text[header.start() : end.end() if end else limit])
        else:
            (said if header["channel"] in _SHOWN else thoughts).append(body)
        said.append(text[end.end() : limit] if end else "")
    return "".join(said), thoughts


def _calls(header: re.Match[str]) -> bool:
    return "to=" in f"{header['role']}{header['rest']}"


def _is_prose(text: str, position: int) -> bool:
    return any(start <= position < end for start, end in prose_parts(text))
