"""What the process learns of its endpoints, on its way to the record."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from agent.domain.endpoint import Endpoint
from agent.llm.endpoints.endpoint_pool import EndpointNews
from agent.record.ground.commit import Ts
from agent.record.record import Record
from agent.record.settings import endpoints

logger = logging.getLogger(__name__)


class EndpointReports:
    """Writes down what clients learn and how endpoints fare. Every method returns at once, never
    raises, and does nothing for an endpoint without a row."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def learnt(self, endpoint: Endpoint, kind: str, words: str) -> None:
        """``endpoint`` refuses ``kind`` (:class:`agent.llm.errors.refusals.RefusalKind`)."""
        if endpoint.pk is not None:
            self._submit(endpoints.save_learnt, endpoints.LearntRefusal(endpoint.pk, kind, words))

    def learnt_window(self, endpoint: Endpoint, tokens: int) -> None:
        """The model's window has so many ``tokens``."""
        if endpoint.pk is not None:
            self._submit(endpoints.save_window, endpoint.pk, tokens)

    def key_refused(self, endpoint: Endpoint, key_index: int, words: str) -> None:
        """The key at ``key_index``, from 0, was refused and is set aside."""
        if endpoint.pk is not None:
            refused = endpoints.RefusedKey(endpoint.pk, key_index, words)
            self._submit(endpoints.save_refused_key, refused)

    def factor(self, endpoint: Endpoint, factor: float) -> None:
        """So many tokens are reported for each that is estimated."""
        if endpoint.pk is not None:
            self._submit(endpoints.save_factor, endpoint.pk, factor)

    def fared(self, news: EndpointNews) -> None:
        """An endpoint begins or ends to fail, or to rest."""
        if news.endpoint.pk is None:
            return
        now = timezone.now()
        change = endpoints.StatusChange(
            news.endpoint.pk,
            rests_until=now + timedelta(seconds=news.rest_seconds) if news.rest_seconds else None,
            answered_at=now if news.has_answered else None,
            error=news.error or None,
        )
        self._submit(endpoints.save_status, change)

    def _submit(self, function: Callable[[*Ts], None], *args: *Ts) -> None:
        if not self._record.is_closed:
            self._record.submit(function, *args).add_done_callback(log_failure)


def log_failure(written: "asyncio.Future[Any]") -> None:
    """Log that what was learnt of an endpoint is not on record."""
    if not written.cancelled() and (error := written.exception()):
        logger.warning("What was learnt of an endpoint was not written down: %s", error)
