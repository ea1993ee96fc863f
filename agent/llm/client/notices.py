"""What a client of one endpoint tells the rest of the program about it."""

from typing import Protocol

from agent.domain.endpoint import Endpoint


class EndpointNotices(Protocol):
    """Is told what a client found out. Every method is called on the loop and returns at once."""

    def learnt(self, endpoint: Endpoint, kind: str, words: str) -> None:
        """``endpoint`` refuses what ``kind`` (:class:`agent.llm.errors.refusals.RefusalKind`)
        names, as it said in ``words``; a request without that has succeeded."""
        ...

    def learnt_window(self, endpoint: Endpoint, tokens: int) -> None:
        """``endpoint`` said how many ``tokens`` its model's window has."""
        ...

    def key_refused(self, endpoint: Endpoint, place: int, words: str) -> None:
        """The key at ``place``, from 0 on, was refused in ``words``, and is set aside."""
        ...

    def factor(self, endpoint: Endpoint, factor: float) -> None:
        """``endpoint`` counts ``factor`` tokens for each that is estimated: keep that as
        ``token_factor``."""
        ...
