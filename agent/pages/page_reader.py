"""Who reads the page that is being made: what an error says of model endpoints is for those who may
see them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from agent.models import ModelEndpoint

VIEW_ENDPOINT = "agent.view_modelendpoint"
#: Of a text that is not known: it speaks of models, or holds an address.
_TELLS = re.compile(r"\bmodel|\bendpoint|模型|端点|://", re.IGNORECASE)


class PageReader:
    """Asks for nothing before an error is shown."""

    def __init__(self, user: Any) -> None:
        self._user = user

    @property
    def may_see_endpoints(self) -> bool:
        return bool(self._user.has_perm(VIEW_ENDPOINT))

    def may_read(self, text: str) -> bool:
        """Whether ``text``, which is no known one, names neither an endpoint nor its host."""
        told = text.casefold()
        return not _TELLS.search(text) and not any(name in told for name in self._names)

    @cached_property
    def _names(self) -> set[str]:
        rows = ModelEndpoint.objects.values_list("name", "model", "base_url")
        names = {one for name, model, url in rows for one in (name, model, urlsplit(url).hostname)}
        return {name.casefold() for name in names if name}


_reader: ContextVar[PageReader | None] = ContextVar("reader of a page", default=None)


def find_shut_out() -> PageReader | None:
    """Whoever reads and may not see model endpoints; None for all others, and outside pages."""
    reader = _reader.get()
    return reader if reader and not reader.may_see_endpoints else None


@contextmanager
def page_read_by(user: Any) -> Iterator[None]:
    """Have errors that are shown within be for ``user``."""
    token = _reader.set(PageReader(user))
    try:
        yield
    finally:
        _reader.reset(token)
