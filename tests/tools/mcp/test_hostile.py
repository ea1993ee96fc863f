"""Servers that do wrong: the fault stays with them, the next call works where it can, and the
operator is told."""

import asyncio
from pathlib import Path

import pytest

from tests.tools.mcp.serving import (
    SLOPPY,
    hostile,
    linked,
    only_the_sloppy_are_left_out,
    said,
    until,
)
from tools.mcp import connection, link as link_module, rate_limits
from tools.mcp.link import State
from tools.mcp.specs import (
    AnswerTimeoutError,
    ConnectionLostError,
    ProtocolViolationError,
    ServerRefusedError,
    ServerUnavailableError,
)

pytestmark = pytest.mark.live


async def test_a_server_that_never_answers_is_given_up_and_tried_again():
    async with linked(hostile("hang-connect", connect_seconds=0.3), is_up=False) as link:
        await until(lambda: link.status("p").state == State.WAITING)
        assert "No answer within 0.3 s." in link.status("p").error
        assert "自动重试" in link.absence_reason()


async def test_a_call_that_hangs_is_stopped_and_the_session_goes_on():
    async with linked(hostile("hang-call", call_seconds=2)) as link:
        with pytest.raises(AnswerTimeoutError, match="No answer"):
            await said(link, "tool")
        assert await said(link) == "fine"


async def test_a_call_that_is_cancelled_leaves_the_session_usable():
    async with linked(hostile("hang-call")) as link:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await said(link, "tool")
        assert await said(link) == "fine"


async def test_a_server_that_dies_in_a_call_restarts_and_its_last_words_are_kept_without_secrets():
    async with linked(hostile("die-call", environment={"KEY": "s3cret-key"})) as link:
        with pytest.raises(ConnectionLostError):
            await said(link, "tool")
        assert await said(link) == "fine"
        error = link.status("p").error
        assert "status 3" in error
        assert "about to fall, the key is ••••" in error


@pytest.mark.parametrize("problem", ["flood-junk", "flood-line", "flood-changes", "flood-stderr"])
async def test_a_server_that_floods_takes_no_time_from_others(problem: str):
    async with (
        linked(hostile(problem, connect_seconds=2), is_up=False) as bad,
        linked(hostile("none")) as good,
    ):
        await until(lambda: bad.status("p").state != State.CONNECTING)
        for _ in range(20):
            assert await said(good) == "fine"


async def test_broken_json_fails_the_call_that_it_answers_at_once():
    async with linked(hostile("bad-json")) as link:
        with pytest.raises(ProtocolViolationError, match="no message of JSON-RPC"):
            await said(link, "tool")
        assert await said(link) == "fine"


async def test_an_answer_under_a_wrong_number_is_nobodys():
    async with linked(hostile("wrong-id", call_seconds=2)) as link:
        with pytest.raises(AnswerTimeoutError):
            await said(link, "tool")
        assert await said(link) == "fine"


async def test_an_answer_of_wrong_types_fails_the_call():
    async with linked(hostile("wrong-type")) as link:
        with pytest.raises(ProtocolViolationError, match="not what the protocol says"):
            await said(link, "tool")
        assert await said(link) == "fine"


async def test_an_answer_beyond_the_limit_fails_the_call():
    async with linked(hostile("huge-result")) as link:
        with pytest.raises(ServerRefusedError, match="larger than 8 MiB"):
            await said(link, "tool")
        assert await said(link) == "fine"


async def test_an_answer_of_too_many_lists_fails_the_call():
    async with linked(hostile("many-lists")) as link:
        with pytest.raises(ServerRefusedError, match="more than 50,000 objects and lists"):
            await said(link, "tool")
        assert await said(link) == "fine"


async def test_brackets_in_a_text_are_no_lists():
    async with linked(hostile("many-brackets")) as link:
        assert await said(link, "tool") == '[{\\"' * 2**20


async def test_a_request_to_use_our_model_is_declined():
    async with linked(hostile("asks")) as link:
        assert "not supported" in await said(link, "tool")


async def test_an_error_of_the_protocol_is_an_ordinary_failure_in_one_line():
    async with linked(hostile("own-error")) as link:
        with pytest.raises(ServerRefusedError, match=r"^not today$"):
            await said(link, "tool")


async def test_ten_thousand_tools_are_cut_to_what_is_offered_and_the_status_says_so():
    async with linked(hostile("many-tools")) as link:
        status = link.status("p")
        assert len(link.catalogue.specs) == 500
        assert status.error == f"Only the first {connection.MAX_DECLARED} tools were read."
        assert status.about["left_out"] == 1500
        assert len(status.tools) == 600


@pytest.mark.parametrize(
    ("problem", "words"), [("endless-pages", "first 50 pages"), ("same-page", "repeats itself")]
)
async def test_pages_without_end_are_not_read_further(problem: str, words: str):
    async with linked(hostile(problem)) as link:
        assert words in link.status("p").error
        assert link.catalogue.specs


async def test_a_list_of_wrong_types_leaves_the_server_without_tools():
    async with linked(hostile("wrong-list")) as link:
        assert link.catalogue.specs == ()
        assert "not what the protocol says" in link.status("p").error


async def test_a_sloppy_entry_of_the_list_costs_no_other_tool():
    async with linked(hostile("sloppy-list", SLOPPY)) as link:
        left_out = only_the_sloppy_are_left_out(link)
        assert "description: Input should be a valid string" in left_out["numbered"]
        assert await said(link) == "fine"


async def test_what_a_server_says_of_itself_is_one_line():
    async with linked(hostile("none")) as link:
        assert link.about["name"] == "hostile [31m"


async def test_a_server_that_dies_of_a_newer_question_is_asked_in_the_old_way():
    async with linked(hostile("old")) as link:
        assert await said(link) == "fine"
        assert "what is this?" in link.status("p").error


async def test_a_server_that_is_down_at_the_start_is_there_when_it_comes_up(tmp_path: Path):
    async with linked(hostile("down", tmp_path / "up"), is_up=False) as link:
        await until(lambda: "not yet" in link.status("p").error)
        (tmp_path / "up").touch()
        await until(lambda: link.is_offered)
        assert await said(link) == "fine"


async def test_failures_in_a_row_leave_the_server_alone_until_one_trial_succeeds(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(rate_limits, "FAILURE_THRESHOLD", 2)
    monkeypatch.setattr(rate_limits, "OPEN_SECONDS", 3)
    async with linked(hostile("hang-call", call_seconds=1.5)) as link:
        for _ in range(2):
            with pytest.raises(AnswerTimeoutError):
                await said(link, "tool")
        assert not link.is_offered
        assert "已暂停使用" in link.absence_reason()
        with pytest.raises(ServerUnavailableError):
            await said(link)
        await until(lambda: link.is_offered)
        assert await said(link) == "fine"


async def test_a_program_that_may_not_be_run_is_not_run_and_not_tried_again(settings):
    settings.MCP_ALLOWED_COMMANDS = []
    async with linked(hostile("none"), is_up=False) as link:
        await until(lambda: link.status("p").state == State.STOPPED)
        assert "MCP_ALLOWED_COMMANDS" in link.status("p").error


async def test_a_server_that_falls_silent_is_noticed_while_nobody_calls(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(link_module, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(link_module, "HEARTBEAT_LIMIT", 0.1)
    async with linked(hostile("dead-silent")) as link:
        await until(lambda: "It did not answer within" in link.status("p").error)


async def test_a_server_that_is_well_is_asked_and_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_module, "HEARTBEAT_SECONDS", 0.02)
    async with linked(hostile("none")) as link:
        since = link.status("p").connected_at
        first = link.status("p").latency_ms
        await until(lambda: link.status("p").latency_ms != first)
        assert link.status("p").connected_at == since


async def test_all_who_wait_are_helped_by_one_new_session(tmp_path: Path):
    async with linked(hostile("die-call", tmp_path / "starts")) as link:
        with pytest.raises(ConnectionLostError):
            await said(link, "tool")
        assert await asyncio.gather(*(said(link) for _ in range(10))) == ["fine"] * 10
    assert (tmp_path / "starts").read_text() == "started\n" * 2


async def test_a_server_that_dies_again_and_again_is_given_longer_and_longer_rests(
    monkeypatch: pytest.MonkeyPatch,
):
    rests: list[int] = []

    def rest(failures: int) -> float:
        rests.append(failures)
        return 0.01

    monkeypatch.setattr(link_module, "retry_delay", rest)
    async with linked(hostile("down", "/nowhere"), is_up=False):
        await until(lambda: len(rests) >= 3)
    assert rests[:3] == [1, 2, 3]
