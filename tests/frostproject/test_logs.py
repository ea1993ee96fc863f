"""Log lines: the run they belong to, JSON, secrets, and the newest ones in memory."""

import json
import logging

import pytest

from frostproject.web.logs import (
    LINES_KEPT,
    JsonFormatter,
    RecentLines,
    RedactingFormatter,
    list_recent_lines,
)
from tools.tracing import log_run, name_runs_in_log


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch):
    """A logger whose lines are kept, and nobody else's."""
    monkeypatch.setattr(logging, "_logRecordFactory", logging.LogRecord)
    name_runs_in_log()
    handler = RecentLines()
    monkeypatch.setattr(RecentLines, "lines", type(RecentLines.lines)(maxlen=LINES_KEPT))
    handler.setFormatter(RedactingFormatter("%(levelname)s %(message)s"))
    logger = logging.Logger("told")  # noqa: LOG001 - one of this test alone
    logger.addHandler(handler)
    return logger


def test_a_line_names_the_run_it_was_logged_in(lines: logging.Logger):
    token = log_run.set(12)
    lines.info("asked %s", "once")
    log_run.reset(token)
    lines.warning("afterwards")
    assert [line.text for line in list_recent_lines()] == [
        "WARNING afterwards",
        "INFO asked once [run 12]",
    ]
    assert [line.run for line in list_recent_lines(run=12)] == [12]


def test_lines_are_found_by_level_and_words_and_only_the_newest_are_kept(lines: logging.Logger):
    for number in range(LINES_KEPT + 5):
        lines.log(logging.ERROR if number % 2 else logging.INFO, "line %d", number)
    assert len(list_recent_lines()) == LINES_KEPT
    assert len(list_recent_lines(logging.ERROR)) == LINES_KEPT // 2
    assert [line.text for line in list_recent_lines(words="LINE 1004")] == ["INFO line 1004"]
    assert list_recent_lines(words="line 4 ") == []


def test_a_json_line_is_one_object_without_secrets(settings):
    settings.METRICS_TOKEN = "metrics-token-1"
    settings.OTEL_EXPORTER_OTLP_HEADERS = "authorization=Bearer trace-key-2"
    text = "got %s\n%s"
    record = logging.LogRecord(
        "a", logging.WARNING, "", 1, text, ("metrics-token-1", "Bearer trace-key-2"), None
    )
    record.run = 7
    line = JsonFormatter().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert told["message"] == "got ***\n***"
    assert (told["level"], told["logger"], told["run"]) == ("WARNING", "a", 7)


def test_a_json_line_holds_the_traceback_of_an_error():
    try:
        raise ValueError("odd")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("a", logging.ERROR, "", 1, "failed", (), info)
    assert "ValueError: odd" in json.loads(JsonFormatter().format(record))["error"]
