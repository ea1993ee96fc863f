"""The values in ``docs/limits.md``: read from where each row says the limit stands.

``python -m tests.limits`` (``make limits``) writes them; the suite fails when they are out of date.
A new limit is a new row: what it limits, an empty value, and "`path/to/file.py` `NAME` (bytes)".
Units are those of SECONDS, and bytes; counts, rates and timedeltas need none.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from frostproject.configuration.env import parse_dotenv
from tests.environment import PROJECT

PAGES = {"en": PROJECT / "docs/limits.md", "zh": PROJECT / "docs/zh-CN/limits.md"}
ROW = re.compile(r"^\| (?P<what>[^|]+) \|[^|]*\| (?P<where>`[^|]+) \|$", re.MULTILINE)
SIZES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "bytes": 1}
TIMES = {
    "en": {"days": 86400, "h": 3600, "min": 60, "s": 1},
    "zh": {"天": 86400, "小时": 3600, "分钟": 60, "秒": 1},
}
#: Seconds of the units that a row may name.
SECONDS = {"ms": 0.001, "s": 1, "days": 86400}


def fill(page: str, language: str) -> str:
    """``page`` with the value of every row as the code has it."""

    def with_value(row: re.Match[str]) -> str:
        return f"| {row['what']} | {'; '.join(values(row['where'], language))} | {row['where']} |"

    return ROW.sub(with_value, page)


def values(where: str, language: str) -> Iterator[str]:
    """The values that ``where`` names: "`file` `NAME` (unit), `NAME`, `other file` `NAME`"."""
    names: Callable[[str], Any] | None = None
    for word, unit in re.findall(r"`([^`]+)`(?: \((\w+)\))?", where):
        if word == ".env.example":
            names = example_settings().__getitem__
        elif word.endswith(".py"):
            names = constants(word)
        else:
            assert names is not None, where
            yield shown(names(word), unit, language)


def example_settings() -> dict[str, float]:
    """The defaults in ``.env.example`` that are numbers, by name."""
    text = (PROJECT / ".env.example").read_text(encoding="utf-8")
    defaults = parse_dotenv(re.sub(r"^#(?=[A-Z_]+=)", "", text, flags=re.MULTILINE))
    numbers = {name: value for name, value in defaults.items() if re.fullmatch(r"[\d.]+", value)}
    return {name: float(value) for name, value in numbers.items()}


def constants(path: str) -> Callable[[str], Any]:
    """Reads a name, or an expression such as ``Phase.HEAD.value``, in the module at ``path``."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    return lambda name: eval(name, dict(vars(module)))  # the project's own document


def shown(value: Any, unit: str, language: str) -> str:
    """``value`` in the words of ``language``. A Rate (``burst``, ``seconds``) says both."""
    if isinstance(value, timedelta):
        return length(value.total_seconds(), language)
    if hasattr(value, "burst"):
        each = length(value.seconds, language)
        then = ", then 1 every {}" if language == "en" else "，之后每 {} 1 次"
        return f"{value.burst}{then.format(each)}"
    if isinstance(value, tuple):
        to = " to " if language == "en" else " 到 "
        return to.join(shown(one, unit, language) for one in (min(value), max(value)))
    if unit == "bytes":
        name, size = next((name, size) for name, size in SIZES.items() if value % size == 0)
        return f"{value // size:,} {name}"
    if unit:
        return length(value * SECONDS[unit], language)
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def length(seconds: float, language: str) -> str:
    """``seconds`` in the largest unit of which they are several, and no fraction."""
    *larger, smallest = TIMES[language].items()
    several = (unit for unit in larger if seconds > unit[1] and seconds % unit[1] == 0)
    name, size = next(several, smallest)
    return f"{seconds / size:g} {name}"


def places(page: str) -> list[str]:
    """Where the limits of ``page`` stand, row by row."""
    return [row["where"] for row in ROW.finditer(page)]


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    for language, file in PAGES.items():
        file.write_text(fill(file.read_text(encoding="utf-8"), language), encoding="utf-8")
