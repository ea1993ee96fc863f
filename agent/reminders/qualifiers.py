"""What stands behind a time and would make it another one, but is not understood. Pure.

A text may begin with such words as well: they count where they stand directly behind the time, and
those that name another time also behind a comma. In quotation marks they are text.
"""

import re
from functools import cache

from agent.reminders.phrases import PART_WORDS, D, M, N, Said, W

_END = r"(?=[ ,、。;!?]|$)"
_PART = "|".join(PART_WORDS.values())
_HOUR = (
    rf"(?:(?:{_PART}) ?)?(?:{N} ?(?:[点點]|[时時](?![间候]))|\d{{1,2}}:\d\d"
    rf"|{N} ?[ap]\.?m(?![a-z])|(?:noon|midnight)(?![a-z]))"
)
_DAY = (
    rf"(?:(?:[上下这本]个?)?{W}[一二三四五六日天]|周末|节?假日|[今明后][天日]"
    rf"|下个?(?:{W}|月)|月[底末]|年底|{N}月"
    rf"|(?:the )?(?:{D}s?|weekends?|weekdays?|holidays?|tomorrow|today|next|end of"
    rf"|\d{{1,2}}(?:st|nd|rd|th))(?![a-z])|{M})"
)
_UNITS = "天|日|周|个?星期|个?礼拜|个月|年|个?小时|分钟|days?|weeks?|months?|years?|hours?|minutes?"
_FOR = "(?:一?共|总共|连续|持续|为期|for (?:the next )?)"
_UNTIL = "(?:一?直到|直至|截至|截止到?|(?:until|till?)(?![a-z]))"
_FEW = "(?:before|after|prior to|ahead of|past|since|until|till?)(?![a-z])"
#: Where it counts (behind what was said; ``open``: no hour was; ``once``: no repeat; "": always),
#: and what it is.
_ROWS = (
    ("", rf"[ ,]*(?:{_UNTIL}|[到至~–—-]|(?:to|through|thru)(?![a-z])) ?{_HOUR}(?!的)"),
    ("", rf"[ ,]*(?:从|自|(?:from|between)(?![a-z])) ?(?:{_HOUR}|{_DAY}|{N} ?(?:到|to |and |-))"),
    ("", rf"[ ,]*{_UNTIL} ?(?:{_DAY}|\d)"),
    ("", r" ?(?:除非|unless(?![a-z]))"),
    ("clock", r"(?:[之以][前后](?!的)|[前后](?=[ ,。;\d半一两三五十]|提醒|$))"),
    ("clock", rf"[ ,]*{_HOUR}(?![的\u3400-\u9fff])|{_HOUR}(?!的)| ?[&/+] ?(?:{_HOUR}|\d)"),
    ("clock", rf"(?:多|出头){_END}| ?(?:起|开始)(?:每|{_END})"),
    ("", r" ?(?:or (?:later|earlier|before|after)|或更[早晚])"),
    ("clock", rf" ?提前 ?(?:{N}|半)|[ ,]*{N} ?(?:{_UNITS}) (?:before|earlier|ahead|in advance)"),
    ("span", rf"[之以]?内(?:{_END}|要|必须|把)"),
    ("open", rf" ?{_FEW}"),
    ("every", rf" ?{_UNTIL}|[ ,]*(?:到|through|thru|by) ?{_DAY}"),
    ("every", r" ?(?:除[了去]|不含|不包括|(?:except|excluding|but not|other than)(?![a-z]))"),
    ("every", rf" ?(?:除|without ){_DAY}| ?(?:隔[天日周月年]|[单双][日号周]){_END}"),
    ("every", r"[ ,]*[^ ,。;]{1,8}(?:除外|不算|例外)"),
    ("every", rf" ?(?:{_FOR} ?{N} ?(?:{_UNITS})|{N} ?(?:{_UNITS}){_END})"),
    ("every", rf" ?(?:(?:{_DAY}[、和及]?){{1,7}}{_END}|{_DAY}(?:开始|起))"),
    (
        "every",
        r" ?(?:on |[只仅]?[在限]?)?(?:每个?|every )?(?:工作日|(?:work(?:ing)?|business) ?days?)"
        + _END,
    ),
    (
        "once",
        rf" ?{_FOR} ?{N} ?(?:天|周|个?星期|个?礼拜|个月|年|次|days?|weeks?|months?|times)(?![a-z])",
    ),
)


@cache
def _list_patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(where, re.compile(row)) for where, row in _ROWS]


def find_qualifier(rest: str, said: Said) -> str:
    """The words at the beginning of ``rest``, what follows on ``said``, that would make it another
    time; "" where there are none."""
    rest = re.sub(r"^ ?\(", "", rest)
    kinds = {"", *said, "once" if "every" not in said else ""}
    if not said.keys() & {"clock", "part", "instant"}:
        kinds.add("open")
    for where, pattern in _list_patterns():
        if where in kinds and (match := pattern.match(rest)):
            return match[0]
    return ""
