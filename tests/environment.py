"""The environment that tests and the servers they start see: nothing of the developer's own."""

import ast
import functools
import os
import threading
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SETTINGS = PROJECT / "frostproject" / "settings.py"
#: Seconds that a test waits for what comes at once on a machine that has nothing else to do.
PATIENCE = 30.0
#: One thread parses at a time: CPython 3.11 counts the depth of all in one place, and stops some
#: of them with "AST constructor recursion depth mismatch". Servers are started in threads.
PARSING = threading.Lock()


@functools.cache
def variables_of_settings() -> tuple[str, ...]:
    """The name of every variable that the settings read, in the order they are read."""
    return tuple(variables_read(SETTINGS.read_text(encoding="utf-8")))


def variables_read(source: str) -> list[str]:
    """Every ``NAME`` of an ``env.reader("NAME", …)`` call in ``source``."""
    with PARSING:
        tree = ast.parse(source)
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_reader(node.func)
    ]
    names = [call.args[0] for call in sorted(calls, key=lambda call: call.lineno) if call.args]
    return list(
        dict.fromkeys(
            name.value
            for name in names
            if isinstance(name, ast.Constant) and isinstance(name.value, str)
        )
    )


def _is_reader(func: ast.expr) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "env"
    )


#: What one person may say in a test is no stranger's flood; tests of the limits set their own.
UNLIMITED = {
    "PERSON_ANSWERS_PER_MINUTE": "0",
    "PERSON_ANSWERS_PER_DAY": "0",
    "CHAT_ANSWERS_PER_MINUTE": "0",
    "TOKENS_PER_DAY": "0",
}


def clean_environment(**values: str) -> dict[str, str]:
    """This process's environment with every setting empty, except ``values``, and without limits of
    answers.

    Empty and not removed: the process environment wins over a ``.env`` file, so
    that an empty value also keeps out what a developer wrote there. Proxies are
    removed, because every test talks to loopback alone.
    """
    kept = {name: value for name, value in os.environ.items() if not _is_foreign(name)}
    return kept | dict.fromkeys(variables_of_settings(), "") | UNLIMITED | values


def _is_foreign(name: str) -> bool:
    return name.lower().endswith("_proxy") or name.startswith("DJANGO_")
