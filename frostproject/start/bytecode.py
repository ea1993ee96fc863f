"""``python -m frostproject.start.bytecode``: loads once what the program may ever load, so that
Python keeps it compiled. ``make install`` runs it, because it has pip compile nothing: that would
be three times as much.

Nothing is started and no database is opened. A wrong setting is left for the start to tell.
"""

import ast
import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import django
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "frostproject.settings")
    with contextlib.suppress(ImproperlyConfigured):
        django.setup()
        for name in sorted({name for file in _sources() for name in _mentioned(file)}):
            with contextlib.suppress(ImportError):  # of a name within a module, or an extra
                importlib.import_module(name)


def _sources() -> Iterator[Path]:
    for layer in ("tools", "agent", "onebot", "frostproject"):
        yield from (ROOT / layer).rglob("*.py")


def _mentioned(file: Path) -> Iterator[str]:
    """What ``file`` is called as a module, and what it imports, also within functions; of
    ``from a import b`` both ``a`` and ``a.b``."""
    yield ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{one.name}" for one in node.names))


if __name__ == "__main__":
    main()
