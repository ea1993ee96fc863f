"""What a failed test leaves behind fails no other: neither its objects, nor what the shared server
still has in hand for it.

Its last frames hold open files, sockets and processes. Python complains of them when it lets go of
them, which would be in the midst of another test. A server that is still at work for it would take
the answers of the model that the next test has scripted.
"""

import gc
import sys
import warnings
from collections.abc import Generator
from typing import Any

import pytest

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, Any, Any]:
    if not item.stash.get(_FAILED, False):
        return (yield)
    live = getattr(item, "funcargs", {}).get("live")
    if live is not None:
        live.kill()
    try:
        return (yield)
    finally:
        if live is not None and nextitem is not None:
            live.start()
        _let_go()


def _let_go() -> None:
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        sys.__dict__.pop(name, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
