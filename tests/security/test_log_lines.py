"""What others send can neither forge a line of the log nor steer the terminal that shows it."""

import logging
from urllib.parse import quote

import pytest

from frostproject.web.logs import RedactingFormatter
from tests.conftest import TOKEN
from tests.security.wire import ask, head, status

FORGED = "2026-11-22 02:00:00,000 INFO    onebot.gateway.gateway: Account 10001 connected (forged)"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
)
HOSTILE = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[31m",
           "\x9b2J", "\x07", "\x00", "\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\ufeff",
           "\U000e0041", "\ud800"]  # fmt: skip


def line(message: str, *arguments: object, error: BaseException | None = None) -> str:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("test", logging.WARNING, __file__, 1, message, arguments, info)
    return RedactingFormatter("%(levelname)s %(name)s: %(message)s").format(record)


def test_a_path_makes_no_line_of_its_own_and_five_hundred_paths_make_few(live):
    before = len(live.log)
    for number in range(500):
        path = "/" + quote(f"nowhere-{number}\n{FORGED}\x1b[31m\u202e")
        assert status(ask(live, head("GET", path, *UPGRADE))) == 403
    assert not [each for each in live.log.splitlines() if each.startswith(FORGED)]
    assert not set("\x1b\u202e") & set(live.log)
    line = "there is no WebSocket at"
    assert line in live.log
    assert live.log[before:].count(line) <= 9


def test_what_django_says_of_a_path_stays_on_its_line(start_server):
    server = start_server(DEBUG="true")
    for path in (f"/admin/\n{FORGED}\x1b[31m", f"/\r\n{FORGED}", f"/\x85{FORGED}\u202e"):
        assert status(ask(server, head("GET", quote(path), "Connection: close"))) in (302, 404)
    assert not [each for each in server.log.splitlines() if each.startswith(FORGED)]
    assert not set("\x1b\u202e\x85") & set(server.log)


def test_headers_of_a_handshake_make_no_lines(live):
    named = (
        f"Authorization: Bearer {TOKEN}",
        "Origin: http://\x85evil\x9b31m",
        "X-Client-Role: \x85banana",
    )
    assert status(ask(live, head("GET", "/ws/frostagent", *UPGRADE, *named))) in (400, 403)
    assert not set("\x85\x9b") & set(live.log)


@pytest.mark.parametrize("sign", HOSTILE)
@pytest.mark.parametrize("template", ["%s", "said %r", "values %s"])
def test_no_value_leaves_its_line_or_hides(sign, template):
    value = {"key": f"a{sign}{FORGED}"} if "values" in template else f"a{sign}{FORGED}"
    shown = line(template, value)
    assert sign not in shown
    assert len(shown.splitlines()) == 1
    shown.encode()


@pytest.mark.parametrize("sign", HOSTILE)
def test_a_text_without_values_begins_no_record(sign):
    shown = line(f"Traceback of a library{sign}{FORGED}")
    assert not [each for each in shown.splitlines()[1:] if not each.startswith("    ")]


def test_a_traceback_is_readable_and_no_record_of_its_own():
    try:
        raise ValueError(f"odd\n{FORGED}\x1b[31m")
    except ValueError as error:
        shown = line("It failed: %s", "x", error=error)
    lines = shown.splitlines()
    assert lines[0] == "WARNING test: It failed: x"
    assert all(each.startswith("    ") for each in lines[1:])
    assert lines[1].strip() == "Traceback (most recent call last):"
    assert any(f'File "{__file__}"' in each for each in lines)
    assert "\x1b" not in shown


def test_what_people_write_is_shown_as_it_is():
    assert line("%s", "早上好 👍🏽 café\tend") == "WARNING test: 早上好 👍🏽 café\tend"
