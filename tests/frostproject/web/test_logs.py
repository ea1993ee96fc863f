"""Lines of the log about requests."""

import logging

import pytest
from django.core.exceptions import PermissionDenied

from frostproject.web.logs import RefusedRequests


def record_of(status: int | None, name: str = "django.request") -> logging.LogRecord:
    error = PermissionDenied("no")
    record = logging.LogRecord(
        name, logging.WARNING, "", 0, "Forbidden: %s", ("/x",), (type(error), error, None)
    )
    if status is not None:
        record.status_code = status
    return record


@pytest.mark.parametrize("name", ["django.request", "django.security.DisallowedHost"])
def test_a_refused_request_is_a_line_without_a_traceback(name):
    for status in (400, 403, 404):
        record = record_of(status, name)
        assert RefusedRequests().filter(record)
        assert record.exc_info is None
        assert record.getMessage() == "Forbidden: /x"


@pytest.mark.parametrize("record", [record_of(500), record_of(None), record_of(403, "agent.run")])
def test_what_failed_keeps_its_traceback(record):
    assert RefusedRequests().filter(record)
    assert record.exc_info is not None
