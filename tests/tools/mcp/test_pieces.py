"""The small parts: words from outside, rates, the breaker, lines of a pipe, and what a row says."""

import json
from dataclasses import replace

import httpx2
import pytest

from tests.tools.mcp.serving import hostile
from tools.mcp import rate_limits
from tools.mcp.limited_streams import TOO_MANY_VALUES, EventChecker, count_values
from tools.mcp.rate_limits import retry_delay
from tools.mcp.settings import to_server_settings
from tools.mcp.transports import LineSplitter, TruncatedLine
from tools.models import McpServer
from tools.text.untrusted import clean_line, clean_tool_name, clean_untrusted


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a\x00b\x1b[0m", "ab[0m"),
        ("a\u202eb\u200b", "ab"),
        ("a\ud800b", "ab"),
        (" \n天气\t", "天气"),
        (5, ""),
        ("abcdef", "abcd…"),
    ],
)
def test_what_cannot_be_seen_is_taken_out(said: object, kept: str):
    assert clean_untrusted(said, 5) == kept


def test_a_line_of_the_log_is_one_line():
    assert clean_line("x\r\n2026 ERROR \x1b[31mforged", 100) == "x 2026 ERROR [31mforged"


@pytest.mark.parametrize(
    ("name", "kept"),
    [("a.b/c", "a_b_c"), ("天气", ""), ("__", ""), ("get天气now", "get_now"), ("", "")],
)
def test_names_keep_what_endpoints_take(name: str, kept: str):
    assert clean_tool_name(name) == kept


def test_calls_to_a_server_that_fails_are_paused_for_as_long_each_time():
    breaker = rate_limits.server_breaker()
    opened = [breaker.fail(0) for _ in range(rate_limits.FAILURE_THRESHOLD)]
    assert opened == [False, False, False, False, True]
    assert not breaker.allows(rate_limits.OPEN_SECONDS - 1)
    assert breaker.begin(rate_limits.OPEN_SECONDS)
    assert not breaker.allows(rate_limits.OPEN_SECONDS)
    breaker.end(is_try=True)  # it taught nothing: the next one tries
    assert breaker.allows(rate_limits.OPEN_SECONDS)
    assert breaker.fail(rate_limits.OPEN_SECONDS)
    assert breaker.seconds_left(rate_limits.OPEN_SECONDS) == rate_limits.OPEN_SECONDS
    breaker.succeed()
    assert breaker.allows(rate_limits.OPEN_SECONDS)


def test_pauses_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rate_limits, "FIRST_PAUSE", 1)
    monkeypatch.setattr(rate_limits, "LONGEST_PAUSE", 300)
    assert 0.5 <= retry_delay(1) <= 1
    assert 4 <= retry_delay(4) <= 8
    assert 150 <= retry_delay(10_000) <= 300


def test_lines_are_found_in_whatever_pieces_they_come():
    lines = LineSplitter()
    assert [lines.split(piece) for piece in (b"on", b"e\ntwo\nth", b"ree", b"\n")] == [
        [],
        [b"one", b"two"],
        [],
        [b"three"],
    ]


def test_of_a_line_that_is_too_long_the_ends_are_kept():
    lines = LineSplitter(limit=1000)
    lines.split(b"BEGIN" + b"x" * 5000)
    [cut, after] = lines.split(b"y" * 5000 + b"END\nnext\n")
    assert isinstance(cut, TruncatedLine)
    assert (cut.startswith(b"BEGIN"), cut.endswith(b"END"), len(cut) < 1000, after) == (
        True,
        True,
        True,
        b"next",
    )


@pytest.mark.parametrize(
    ("text", "containers", "values"),
    [
        (b'{"a":[[],{"b":1}]}', 4, 5),
        (b'{"a":"[[[,","b":"]{","c":[]}', 2, 4),
        (rb'{"a":"\\","b":[1],"c":"\"[[","d":"\\\"[,","e":""}', 2, 6),
        (b'["[","[",["["],",","a,b"]', 2, 6),
    ],
)
def test_values_are_counted_outside_of_texts(text: bytes, containers: int, values: int):
    json.loads(text)
    assert count_values(text) == (containers, values)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_the_data_of_one_event_is_judged_together(newline: bytes, size: int):
    line = b"data:" + b"[" * 30_000 + newline
    harmless = (b': "' + newline + line + newline) * 2

    def passed(stream: bytes) -> bytes:
        events = EventChecker()
        parts = [stream[at : at + size] for at in range(0, len(stream), size)]
        return b"".join([*map(events.pass_lines, parts), events.pass_rest()])

    assert passed(harmless) == harmless
    with pytest.raises(httpx2.SSEError, match=TOO_MANY_VALUES):
        passed(harmless + line + b": a comment" + newline + line + newline)


def test_values_of_headers_and_variables_are_masked():
    settings = hostile(
        "none", environment={"A": "tok-12345"}, headers={"Authorization": "Bearer abcdef"}
    )
    assert settings.masked("tok-12345, Bearer abcdef and abcdef") == "••••, •••• and ••••"
    far = replace(
        settings,
        url="https://a.example/api/s/NmE5YmQ0ZDI/mcp?key=12345678#frag-ment",
        arguments=("--pat", "ghp_letters"),
    )
    assert far.masked(f"for url {far.url}: 12345678, NmE5YmQ0ZDI, frag-ment, ghp_letters") == (
        "for url https://a.example/••••: ••••, ••••, ••••, ••••"
    )
    assert "ghp_letters" not in repr(far)
    assert "12345678" not in repr(far)
    assert "abcdef" not in repr(settings)


def test_a_change_of_what_is_taken_needs_no_new_connection():
    before = hostile("none")
    assert replace(before, include=("a",), reconnects=1).reaches_as(before)
    assert not replace(before, environment={"A": "b"}).reaches_as(before)


def test_a_row_whose_secrets_cannot_be_read_says_that_they_are_to_be_entered_anew():
    row = McpServer(name="a", command="x", sealed_headers="nonsense")
    assert "Enter them anew" in to_server_settings(row).problem


def test_a_row_is_read_whole(settings):
    settings.MCP_ALLOWED_COMMANDS = ["x"]
    row = McpServer(name="a", command="x", plain_arguments=["-y", 5], include="get_*, list_*\nfind")
    row.environment = {"A": "b"}
    read = to_server_settings(row)
    assert (read.arguments, read.include, read.environment, read.problem) == (
        ("-y", "5"),
        ("get_*", "list_*", "find"),
        {"A": "b"},
        "",
    )


def test_a_program_that_is_no_longer_allowed_is_not_run_any_more(settings):
    row = McpServer(name="a", command="x", transport="stdio")
    settings.MCP_ALLOWED_COMMANDS = ["x"]
    assert to_server_settings(row).problem == ""
    settings.MCP_ALLOWED_COMMANDS = ["y"]
    assert "is not among the programs" in to_server_settings(row).problem


def test_a_row_without_what_its_transport_needs_has_a_problem():
    assert to_server_settings(McpServer(name="a")).problem == "It has no command."
    assert to_server_settings(McpServer(name="a", transport="sse")).problem == "It has no URL."
