"""The program that draws pictures of an answer: ``python -m agent.markdown.drawing``.

The words come from a model, and from whoever talks to it. So they are data to the typesetter and
never its code, and it runs in a process that holds nothing else, is bounded in time and memory,
has no network to go to and reads the fonts alone. Standard input is a JSON list of jobs as
``pictures.typ`` takes them, a formula as LaTeX; standard output becomes a JSON list with a picture
for each, a PNG in Base64, or "" where it could not be drawn.
"""

import base64
import html
import json
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import noto_cjk_sans_otc
import typst
from latex2mathml import exceptions
from latex2mathml.converter import convert_to_element

from tools.processes.own_limits import limit_this_process

#: Address space of the process in bytes, and what it may take of a processor in seconds.
MEMORY_BYTES = 2 * 2**30
CPU_SECONDS = 10
#: Dots an inch: two for each of the page's points, so that a phone shows it sharp.
RESOLUTION = 144.0
#: A larger picture is not sent; in bytes.
LARGEST = 4 * 2**20
PAGE = Path(__file__).with_name("pictures.typ")
FONTS = Path(noto_cjk_sans_otc.__file__).parent
ENVIRONMENTS = re.compile(r"\\(begin|end)\{(?:aligned|align\*?|gathered|gather\*?|eqnarray\*?)\}")

COMMANDS = re.compile(r"\\(?:begin|end)\{[^}]*\}(?:\{[lcr| ]*\})?|\\[a-zA-Z]+")
UNDRAWN = re.compile(r"\\(?:not|cancel|xcancel|bcancel)(?![a-zA-Z])")
"""Commands that are read, and whose meaning would be lost in the picture."""

NOT_DRAWN: tuple[type[Exception], ...] = (
    *(RuntimeError, ValueError, LookupError, TypeError, AttributeError, StopIteration),
    *(
        one
        for one in vars(exceptions).values()
        if isinstance(one, type) and issubclass(one, Exception)
    ),
)
"""What the reader of formulae and the typesetter raise; they have no error in common."""


def main() -> None:
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    jobs = json.loads(sys.stdin.buffer.read())
    fonts = typst.Fonts(include_system_fonts=False, font_paths=[FONTS])
    compiler = typst.Compiler(PAGE, font_paths=fonts)
    json.dump([draw(compiler, job) for job in jobs], sys.stdout)


def draw(compiler: typst.Compiler, job: dict[str, Any]) -> str:
    """The picture of ``job``, "" where none can be made."""
    try:
        if "formula" in job:
            job = {"formula": formula_tree(job["formula"])}
        made = compiler.compile(format="png", ppi=RESOLUTION, sys_inputs={"job": json.dumps(job)})
    except NOT_DRAWN:
        return ""
    if not isinstance(made, bytes) or len(made) > LARGEST:
        return ""
    return base64.b64encode(made).decode()


def formula_tree(latex: str) -> list[object]:
    """A formula as ``pictures.typ`` takes it. Raises ValueError for a command that is not known
    and for a formula that is not read whole, or whatever the reader raises for what is no
    LaTeX."""
    if found := UNDRAWN.search(latex):
        raise ValueError(found[0])
    latex = ENVIRONMENTS.sub(r"\\\1{split}", latex)
    tree = _tree(convert_to_element(latex))
    if missing := _letters(COMMANDS.sub(" ", latex)) - _letters(_words(tree)):
        raise ValueError(f"{missing.total()} letters are not in what was read")
    return tree


def _letters(text: str) -> "Counter[str]":
    """The letters and digits, whatever their shape."""
    return Counter(filter(str.isalnum, unicodedata.normalize("NFKD", text)))


def _words(tree: list[Any]) -> str:
    return str(tree[2]) + "".join(map(_words, tree[3]))


def _tree(element: Element) -> list[object]:
    word = html.unescape(element.text or "")
    if word.startswith("\\"):
        raise ValueError(word)
    return [element.tag, dict(element.attrib), word, [_tree(child) for child in element]]


if __name__ == "__main__":
    main()
