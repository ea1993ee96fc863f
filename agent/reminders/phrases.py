"""The phrases that name days, hours, spans and repeats, in Chinese and English. Pure.

Each is a regular expression that repeats nothing without a bound, and what it says: entries of
which each may be said once.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from agent.reminders.rules import DAY_NAMES, DAYS, UNITS
from agent.reminders.unclear import Unclear, UnclearTime

Said = dict[str, Any]

_ONES = re.findall(
    "[a-z]+",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen",
)
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}
_HAN = " 一二三四五六七八九"
_SMALL = {_HAN[number]: number for number in range(1, 10)}
#: Numbers in words; more than these nobody writes in words.
NUMBERS: dict[str, int] = (
    {word: number for number, word in enumerate(_ONES, 1)}
    | _TENS
    | {
        f"{word}{sign}{ones}": tens + number
        for word, tens in _TENS.items()
        for number, ones in enumerate(_ONES[:9], 1)
        for sign in "- "
    }
    | {
        f"{_HAN[tens] if tens > 1 else ''}{'十' if tens else ''}{_HAN[ones]}".strip(): tens * 10
        + ones
        for tens in range(10)
        for ones in range(10)
        if tens or ones
    }
    | {f"{zero}{word}": number for word, number in _SMALL.items() for zero in "零〇"}
    | {"a": 1, "an": 1, "两": 2, "零": 0, "〇": 0, "一百": 100, "一千": 1_000, "一万": 10_000}
)
#: Hours by the part of the day in which they are; 24 is the end of the day.
PARTS: dict[str, dict[int, int]] = {
    "early": {12: 0, 0: 0} | {hour: hour for hour in range(7)},
    "morning": {hour: hour for hour in range(1, 12)},
    "noon": {11: 11, 12: 12, 1: 13, 2: 14},
    "afternoon": {12: 12} | {hour: hour + 12 for hour in range(1, 8)},
    "evening": {hour: hour + 12 for hour in range(4, 12)},
    "night": {12: 24, 0: 24} | {hour: hour + 12 for hour in range(5, 12)},
    "deep": {12: 24, 10: 22, 11: 23} | {hour: hour for hour in range(1, 6)},
}
PART_WORDS = {
    "early": "凌晨|清晨|early morning",
    "morning": "早上|早晨|上午|早|(?:in the )?morning",
    "noon": "中午",
    "afternoon": "下午|午后|(?:in the )?afternoon",
    "evening": "傍晚|(?:in the )?evening",
    "night": "晚上|夜晚|晚|(?:at )?night",
    "deep": "半夜|深夜|夜里",
}
_FREQUENCIES = {
    "SECONDLY": "秒钟?|sec(?:ond)?s?",
    "MINUTELY": "分钟?|min(?:ute)?s?",
    "HOURLY": "个?小时|个?钟头|h(?:ou)?rs?",
    "DAILY": "天|日|days?",
    "WEEKLY": "周|个?星期|个?礼拜|weeks?",
    "MONTHLY": "个?月|months?",
    "YEARLY": "年|years?",
}
_SPAN_UNITS = {
    "years": "年|years?|y",
    "months": "个月|months?",
    "weeks": "周|个?星期|个?礼拜|weeks?|w",
    "days": "天|days?|d",
    "hours": "个?小时|个?钟头|h(?:ou)?rs?|h",
    "minutes": "分钟|分(?=[后之以]|钟)|min(?:ute)?s?|m",
    "seconds": "秒钟?|sec(?:ond)?s?|s",
}
_MONTHS = re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec")
_WEEKDAYS = {
    word: number % 7
    for number, word in enumerate([*"一二三四五六日", *re.findall("...", "montuewedthufrisatsun")])
} | {"天": 6}
_OFFSETS = {
    "大前天": -3, "前天": -2, "day before yesterday": -2, "昨天": -1, "昨日": -1, "yesterday": -1,
    "今天": 0, "今日": 0, "today": 0, "明天": 1, "明日": 1, "明儿": 1, "tomorrow": 1, "tmr": 1,
    "后天": 2, "day after tomorrow": 2, "大后天": 3, "今": 0, "明": 1, "后": 2, "昨": -1,
}  # fmt: skip
_FESTIVALS = {
    "元旦": (1, 1), "劳动节": (5, 1), "国庆节": (10, 1), "国庆": (10, 1), "圣诞节": (12, 25),
    "圣诞": (12, 25), "christmas": (12, 25), "new year's day": (1, 1),
}  # fmt: skip
_PLACES = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1, "最后一": -1}
_AHEAD = {"": None, "上": -1, "last": -1, "这": 0, "今": 0, "本": 0, "this": 0}
_AHEAD |= {"next": 1, "明": 1, "后": 2}
_AGO = re.compile(r"(?:前| ago)$")


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_ONE = _any(_ONES[:9])
N = (
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,12}|[零〇一二两三四五六七八九十百千万]{1,3}"
    rf"|(?:(?:{_any(_TENS)})(?:[- ](?:{_ONE}))?|{_any(_ONES)}|an?)(?![a-z]))"
)
W = "(?:周|星期|礼拜)"
_C = "[一二三四五六日天]"
D = (
    "(?:mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:rs?|rsday)?|fri(?:day)?|sat(?:urday)?"
    "|sun(?:day)?)"
)
M = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])\.?"
)
_AM = r"(?P<half>[ap])\.?m(?![a-z])\.?"
_MINUTES = rf"半(?!个|小时|天)|[一三123]刻钟?|过?[零〇]?{N} ?分(?!钟)|[0-5]\d(?![\d个元块:])"
_HAN_MINUTES = "(?:[二三四五]?十[一二三四五六七八九]?|[零〇][一二三四五六七八九])(?!个|元|块|分)"
_FEW = f"(?:half|(?:a )?quarter|five|ten|twenty(?:[- ]five)?|{N} minutes?)"
_IN = "(?:in |after |再?过|再)?"
_HOUR = "(?:小时|钟头|h(?:ou)?rs?|h)(?![a-z])"
_MORE_DAYS = rf"(?:(?:, ?and |, ?| and | & |/)(?:every )?{D}s?(?![a-z])){{0,6}}"
_EVERY_WORDS = {
    "daily": "DAILY",
    "天天": "DAILY",
    "hourly": "HOURLY",
    "weekly": "WEEKLY",
    "monthly": "MONTHLY",
    "yearly": "YEARLY",
    "annually": "YEARLY",
}
_TAIL = "(?:之后|以后|过后|后| later| from now|之前|以前|前| ago)?"
_YEAR = r"(?:,? (?P<year>\d{4})(?![\d:]))?"
_SPAN_UNIT = "|".join(_SPAN_UNITS.values())
_COMPONENTS = "".join(
    rf"(?: ?(?:and |, ?|零|又)?(?P<{unit}>{N}) ?(?:{words})(?![a-z]))?"
    for unit, words in _SPAN_UNITS.items()
)
_ISO_SPAN = "".join(
    f"{'(?:t' * (unit == 'hours')}(?:(?P<{unit}>\\d{{1,12}}){unit[0]})?" for unit in _SPAN_UNITS
)
_EVERY = "|".join(f"(?P<{freq}>{words})" for freq, words in _FREQUENCIES.items())


def to_number(word: str | None, default: int = 0) -> int:
    """What a number of :data:`N` says."""
    plain = (word or str(default)).replace(",", "")
    if not plain.isdecimal() and plain not in NUMBERS:
        raise UnclearTime(Unclear.NO_TIME, words=plain)
    return int(plain) if plain.isdecimal() else NUMBERS[plain]


def _clock(
    hour: str, minute: int = 0, second: int = 0, *, half: str | None = "", exact: bool = False
) -> Said:
    # ``half``: ``a`` or ``p`` of an hour that says which half of the day it is in.
    number = to_number(hour)
    if minute < 0:
        number, minute = (number - 1) or 12, minute + 60
    if (
        number > 24
        or minute > 59
        or second > 59
        or (half and not 0 < number < 13)
        or (number == 24 and minute)
    ):
        raise UnclearTime(Unclear.NO_SUCH_DAY, words=f"{number}:{minute:02}")
    if half:
        number = number % 12 + 12 * (half == "p")
    return {"clock": (number, minute, second, exact or bool(half) or not 0 < number < 13)}


def _colon_clock(m: re.Match[str]) -> Said:
    return _clock(m[1], int(m[2]), int(m[3] or 0), half=m["half"], exact=True)


def _han_clock(m: re.Match[str]) -> Said:
    # ``八点``, and what may follow: ``半``, ``一刻``, ``十五分``, ``15``.
    words = (m["minutes"] or "").strip(" 过分钟")
    if words == "半" or "刻" in words:
        minute = 30 if words == "半" else 15 * to_number(words[0])
    else:
        minute = to_number(words.lstrip("零〇") or words or None)
    return _clock(m["hour"], minute, to_number(m["second"]))


def _relative_clock(m: re.Match[str]) -> Said:
    # ``half past eight``, ``ten to nine``, ``差五分九点``.
    said = m.groupdict()
    words = said["few"].split(" min")[0].removeprefix("a ").removesuffix("分")
    minute = {"half": 30, "quarter": 15, "一刻": 15}.get(words) or to_number(words)
    sign = 1 if said.get("past") else -1
    return _clock(said["hour"], sign * minute, half=said.get("half"))


def _span(m: re.Match[str]) -> Said:
    sign = -1 if _AGO.search(m[0]) else 1
    return {"span": {unit: sign * to_number(n) for unit, n in m.groupdict().items() if n}}


def _minutes(m: re.Match[str], minutes: int) -> Said:
    # 半小时, 一个半小时, 1.5 hours, 三刻钟
    return {"span": {"minutes": -minutes if _AGO.search(m[0]) else minutes}}


def _count_ahead(m: re.Match[str]) -> int | None:
    # Of 下下周 2, of this week 0; None where nothing says it.
    word = m.groupdict().get("ahead") or ""
    return word.count("下") or _AHEAD[word if word.isascii() else word[0]]


def _month_day(m: re.Match[str]) -> Said:
    # A month, a day and perhaps a year, or how many years ahead.
    said = m.groupdict()
    month = said.get("name")
    number = _MONTHS.index(month[:3]) + 1 if month else to_number(said["month"])
    return {
        "day": (
            "date",
            to_number(said["year"]) if said.get("year") else None,
            number,
            to_number(m["day"]),
            _count_ahead(m),
        )
    }


def _slashed_day(m: re.Match[str]) -> Said:
    # ``12/25`` and ``25/12`` are sure, ``3/4`` is not.
    first, second = int(m[1]), int(m[2])
    if first != second and max(first, second) <= 12:
        raise UnclearTime(
            Unclear.TWO_DAYS, first=f"{first:02}-{second:02}", second=f"{second:02}-{first:02}"
        )
    month, day = (second, first) if first > 12 else (first, second)
    return {"day": ("date", int(m[3]) if m[3] else None, month, day, None)}


def _day_of_month(m: re.Match[str]) -> Said:
    # A day, -1 for the last, of a month that is so many ahead; of the next that has it.
    day = to_number(m["day"]) if m.groupdict().get("day") else -1
    return {"day": ("of_month", _count_ahead(m), day)}


def _weekday(m: re.Match[str]) -> Said:
    return {"day": ("weekday", _count_ahead(m), _WEEKDAYS[m["name"][:3]])}


def _weekly(days: Iterable[int], **parts: str) -> Said:
    names = ",".join(DAY_NAMES[day] for day in days)
    return {"every": {"FREQ": "WEEKLY", "BYDAY": names, **parts}}


def _list_days(words: str) -> set[int]:
    if "周末" in words or "weekend" in words:
        return {5, 6}
    return {_WEEKDAYS[word[:3]] for word in re.findall(f"{_C}|{D}", words)}


def _weekdays(m: re.Match[str]) -> Said:
    return _weekly(sorted(_list_days(m[0])))


def _weekday_range(m: re.Match[str]) -> Said:
    first, last = (_WEEKDAYS[word[:3]] for word in re.findall(f"{_C}|{D}", m[0])[:2])
    return _weekly(sorted((first + number) % 7 for number in range((last - first) % 7 + 1)))


def _place_in_month(m: re.Match[str]) -> Said:
    # ``第一个周一``, ``last Friday``.
    place = _PLACES[m[2]] if m[2] else to_number(m[1])
    return {"day": ("place", place, _WEEKDAYS[m[3][:3]])}


def _find_frequency(m: re.Match[str]) -> str:
    return next(name for name in _FREQUENCIES if m[name])


def _every(m: re.Match[str]) -> Said:
    # ``每两天``, ``every other week``; ``每隔两天`` may also mean every third day.
    freq = _find_frequency(m)
    number = 2 if m["count"] in {"other", "second"} else to_number(m["count"], 1)
    if m.groupdict().get("apart") and freq in DAYS:
        if number > 1:
            raise UnclearTime(Unclear.TWO_GAPS, words=m[0], first=number, second=number + 1)
        number = 2
    return {"every": {"FREQ": freq, "INTERVAL": str(number)}}


_DATES = (
    r"(?P<year>\d{4})(?:-|/|年|\.) ?(?P<month>\d{1,2})(?:-|/|月|\.) ?(?P<day>\d{1,2})"
    r"(?:日|号|(?!\d))",
    rf"(?:(?P<ahead>今|明|后)年的?)?(?P<month>{N})月 ?(?P<day>{N})(?:日|号)?",
    rf"(?:on )?(?P<name>{M}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![a-z\d:]){_YEAR}",
    rf"(?:on )?(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<name>{M}){_YEAR}",
)
_WORKING = {"FREQ": "DAILY", "BYDAY": ",".join(DAY_NAMES[:5])}
_DAILY = "早|晚|上午|中午|下午|(?:early )?morning|afternoon|evening|night|noon|midnight"
_HALF_HOUR = {"FREQ": "MINUTELY", "INTERVAL": "30"}
_OTHER_DAY = {"FREQ": "DAILY", "INTERVAL": "2"}
_SOME_DAYS = f"(?:{W}{_C}(?:[、,和及与]?{W}?{_C}){{0,6}}|周末)"
_BUT = "(?:except|excluding|but not|not)(?: for)?(?: on)?"
_FREE = "(?:周末[、和及与]?(?:法定)?节?假日|(?:法定)?节?假日[、和及与]?周末)"
_VAGUE = "next (?:week|month|year)|(?:this |next )?weekend(?![a-z])"
#: By what they are about: the phrase, and what it says.
_ROWS: dict[str, list[tuple[str, Callable[[re.Match[str]], Said]]]] = {
    "": [
        (r"[ ,、。;]|的|请|[只仅]?在|于|和|及|或者?|还是|提醒我|左右(?!手)|前后", lambda _: {}),
        (
            "(?:and|or(?: so)?|at|on|in|the|of|by|for|from|starting|only|please|remind me)"
            "(?![a-z])",
            lambda _: {},
        ),
    ],
    "instant": [
        (
            r"(?:\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:[.]\d{1,9})?)?|\d{8}t\d{4}(?:\d\d)?)"
            r" ?(?:z|[+-]\d\d(?::?\d\d)?)?(?![\w:])",
            lambda m: {"instant": m[0].upper().replace(" ", "T", 1)},
        )
    ],
    "clock": [
        (
            rf"(?:at |@ ?)?(\d{{1,2}}):(\d\d)(?::(\d\d))?(?![\d:])(?: ?{_AM}|整|分(?!钟))?",
            _colon_clock,
        ),
        (rf"(?:at |@ ?)?({N}) ?{_AM}", lambda m: _clock(m[1], half=m["half"])),
        (
            rf"(?:at|@|around) ?({N})(?: ?o'?clock)?(?![a-z\d:/]|[.,]\d|[\u3400-\u9fff])",
            lambda m: _clock(m[1]),
        ),
        (
            rf"({N})(?: ?o'?clock(?![a-z])|(?= (?:in the (?:morning|afternoon|evening)|at night)))",
            lambda m: _clock(m[1]),
        ),
        (
            rf"(?:at )?({N}) (fifteen|thirty|forty[- ]five)(?![a-z])(?: ?{_AM})?",
            lambda m: _clock(m[1], to_number(m[2]), half=m["half"]),
        ),
        (
            rf"(?:at )?(?P<few>{_FEW}) (?:(?P<past>past|after)|to|before) (?P<hour>{N})(?![\d:])"
            rf"(?: ?{_AM})?",
            _relative_clock,
        ),
        (rf"差(?P<few>{N}分|一刻)钟?(?P<hour>{N})点", _relative_clock),
        (rf"(?P<hour>{N})点差(?P<few>{N}分|一刻)钟?", _relative_clock),
        (
            rf"(?P<hour>{N}) ?(?:点|點|时(?![间候不])|時)(?:钟|鐘|整)?"
            rf"(?: ?(?P<minutes>{_MINUTES}|{_HAN_MINUTES})(?: ?(?P<second>{N})秒)?)?",
            _han_clock,
        ),
        (r"(?:at )?(?:12 )?(?:noon|midday)(?![a-z])|正午", lambda _: _clock("12", exact=True)),
        (
            r"(?:at )?(?:12 )?midnight(?![a-z])|午夜",
            lambda _: _clock("24") | {"midnight": True},
        ),
    ],
    "part": [
        (f"(?:{words})(?![a-z])", partial(lambda part, _: {"part": part}, part))
        for part, words in PART_WORDS.items()
    ],
    "span": [
        (rf"{_IN}(?={N} ?(?:{_SPAN_UNIT})(?![a-z])){_COMPONENTS}{_TAIL}", _span),
        (
            rf"{_IN}({N}) fortnights?(?![a-z]){_TAIL}",
            lambda m: {"span": {"weeks": (-2 if _AGO.search(m[0]) else 2) * to_number(m[1])}},
        ),
        (rf"p(?=t?\d){_ISO_SPAN})?(?![a-z\d])", _span),
        (
            rf"{_IN}({N}) ?(?:个半{_HOUR}|and a half {_HOUR}|[.]5 ?{_HOUR}"
            rf"|个?{_HOUR}(?: and a half|半)){_TAIL}",
            lambda m: _minutes(m, 30 + 60 * to_number(m[1])),
        ),
        (f"{_IN}(?:半个?|half an? |half ){_HOUR}{_TAIL}", lambda m: _minutes(m, 30)),
        (f"{_IN}([一二两三123])刻钟{_TAIL}", lambda m: _minutes(m, 15 * to_number(m[1]))),
        (f"{_IN}(?:a )?quarter of an {_HOUR}{_TAIL}", lambda m: _minutes(m, 15)),
    ],
    "day": [
        (
            rf"(?:the )?(?:{_any(_OFFSETS)})(?![a-z])(?<![今明后昨])",
            lambda m: {"day": ("offset", _OFFSETS[m[0].removeprefix("the ")])},
        ),
        ("[今明后昨](?=[早晚])", lambda m: {"day": ("offset", _OFFSETS[m[0]])}),
        ("this (?=morning|afternoon|evening)", lambda _: {"day": ("offset", 0)}),
        ("tonight(?![a-z])", lambda _: {"day": ("offset", 0), "part": "night"}),
        (rf"(?:(?P<ahead>上|这|本|下{{1,3}})[个一]?)?{W}(?P<name>{_C})", _weekday),
        (
            rf"(?:on )?(?:(?P<ahead>next|this|last) |coming |this coming )?(?P<name>{D})"
            "(?![a-z]| of)",
            _weekday,
        ),
        *((date, _month_day) for date in _DATES),
        (r"(\d{1,2})/(\d{1,2})(?:/(\d{4}))?(?![\d/])", _slashed_day),
        (_any(_FESTIVALS), lambda m: {"day": ("date", None, *_FESTIVALS[m[0]], None)}),
        (rf"(?:(?P<ahead>本|这个?|下{{1,3}}个?)月的?)?(?P<day>{N})[号日]", _day_of_month),
        (
            r"(?:on )?(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)(?: of (?P<ahead>this|next) month)?"
            "(?![a-z])",
            _day_of_month,
        ),
        (
            "(?P<ahead>本|这个?|下{1,3}个?)?月(?:的?最后一天|底|末)|最后一天|(?<=月)[底末]",
            _day_of_month,
        ),
        (
            "(?:on |at )?(?:the )?(?:(?:end|last day) of (?:the |(?P<ahead>this|next) )month"
            "|(?:end|last day)(?= of (?:every|each))|last day(?! of))(?=[ ,]|$)",
            _day_of_month,
        ),
        (f"(?:第({N})|(最后一))个?{W}({_C})", _place_in_month),
        (
            r"(?:on )?(?:the )?(?:(\d)(?:st|nd|rd|th)|(first|second|third|fourth|last))"
            rf" ({D})(?![a-z])",
            _place_in_month,
        ),
        (f"周末|下个?(?:{W}|月)|明年|{_VAGUE}", lambda _: {"day": ("vague",)}),
    ],
    "every": [
        (f"每(?P<apart>隔)?(?P<count>{N})?(?:{_EVERY})", _every),
        (
            f"(?:of )?(?:every|each) (?:(?P<count>{N}|other|second) )?(?:{_EVERY})(?![a-z])",
            _every,
        ),
        ("(?:每|every )半个?小时|every half(?: an)? hour", lambda _: {"every": _HALF_HOUR}),
        ("|".join(_EVERY_WORDS), lambda m: {"every": {"FREQ": _EVERY_WORDS[m[0]]}}),
        ("隔[天日]|every other day", lambda _: {"every": _OTHER_DAY}),
        (f"(?:每个?|every )(?={_DAILY})", lambda _: {"every": {"FREQ": "DAILY"}}),
        (f"[每逢]个?{W}{_C}(?:[、,和及与跟]?{W}?{_C}(?![点點时時十])){{0,6}}", _weekdays),
        (f"(?:每个?)?{W}{_C}[到至~-]{W}?{_C}(?:的?每天)?", _weekday_range),
        (
            f"(?:(?:every week|weekly) on |every |each ){D}s?(?![a-z]){_MORE_DAYS}",
            _weekdays,
        ),
        (f"(?:on )?{D}s(?<=days)(?![a-z]){_MORE_DAYS}(?: only(?![a-z]))?", _weekdays),
        (f"(?:every )?{D} ?(?:to|through|-|–) ?{D}(?![a-z])", _weekday_range),
        (
            f"every other (?P<name>{D})(?![a-z])",
            lambda m: _weekly([_WEEKDAYS[m["name"][:3]]], INTERVAL="2"),
        ),
        (
            "(?:(?:every|each) weekday|(?:on )?weekdays)(?: only)?(?![a-z])",
            lambda _: _weekly(range(5)),
        ),
        (
            "每个?周末|(?:(?:every|each) weekend|(?:on )?weekends)(?![a-z])",
            lambda _: _weekly((5, 6)),
        ),
        (
            "(?:每个?)?工作日(?![志报])(?:的?每天)?"
            "|(?:(?:every|each|on) )?(?:work(?:ing)?|business) ?days?(?![a-z])",
            lambda _: {"every": _WORKING},
        ),
        (f"every (?={M})", lambda _: {"every": {"FREQ": "YEARLY"}}),
    ],
    "no_holidays": [
        (
            r"\(?(?:法定)?节?假日(?:除外|不算)\)?|除了?(?:法定)?节?假日(?:以外|之外|外)?"
            f"|{_BUT}(?: public)? holidays",
            lambda _: {"no_holidays": True},
        )
    ],
    "except": [
        (
            f"除[了去]?{_SOME_DAYS}(?:以外|之外|外)?|{_SOME_DAYS}(?:除外|不算|例外|不提醒)"
            f"|{_BUT} (?:weekends?|{D}s?(?![a-z]){_MORE_DAYS})(?![a-z])",
            lambda m: {"except": _list_days(m[0])},
        ),
        (
            f"{_FREE}(?:除外|不算)|除了?{_FREE}(?:以外|之外|外)?"
            f"|{_BUT} (?:weekends (?:and|or) (?:public )?holidays"
            "|(?:public )?holidays (?:and|or) (?:on )?weekends)(?![a-z])",
            lambda _: {"except": {5, 6}, "no_holidays": True},
        ),
    ],
    "end": [
        (
            rf"(?:一?共|总共|重复)?({N})次|(?:for )?({N}) times(?![a-z])",
            lambda m: {"end": ("", to_number(m[1] or m[2]))},
        ),
        (
            rf"(?:一?共|总共|连续|持续|为期|for (?:the next )?)(?P<count>{N}) ?(?:{_EVERY})"
            "(?![a-z])",
            lambda m: {"end": (_find_frequency(m), to_number(m["count"]))},
        ),
    ],
}
#: Behind these words a day is the last one of a repeat.
UNTIL = re.compile("(?P<firm>(?:一?直|持续)到|直至|截至|截止到?|until |till? |through |thru )|到")


def merge_repeats(said: Said, new: Said) -> dict[str, str] | None:
    """The one repeat of ``said`` and, behind it, ``new``: ``every 2 hours``, ``on weekdays``. None
    where they are none."""
    known, added = said.get("every"), new["every"]
    for plain, days in ((known, added), (added, known if "clock" not in said else None)):
        if not plain or not days or "BYDAY" in plain or not {"BYDAY"} <= days.keys() - {"INTERVAL"}:
            continue
        if plain["FREQ"] == "DAILY" and plain["INTERVAL"] == "1":
            return dict(days)
        if plain["FREQ"] in UNITS and days["FREQ"] == "WEEKLY":
            return {**plain, "BYDAY": days["BYDAY"]}
    return None


@cache
def list_phrases() -> list[tuple[str, re.Pattern[str], Callable[[re.Match[str]], Said]]]:
    """What each is about, how it is found, and what it says. Made for the first words that are
    read: it takes some ten milliseconds."""
    return [(about, re.compile(row), read) for about, rows in _ROWS.items() for row, read in rows]
