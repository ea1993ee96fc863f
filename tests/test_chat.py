"""``manage.py chat``, run as people run it: in a process of its own, on a data folder of its
own."""

import contextlib
import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import zygote
from tests.environment import PROJECT, clean_environment
from tests.scripted_model import (
    Call as ToolCall,
    ScriptedModel,
    call,
    calls,
    fails,
    hangs,
    held,
    says,
)

pytestmark = pytest.mark.live
SECONDS = 30


class Terminal:
    """A data folder, and the command run on it."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        fixed = {
            "FROST_DATA_DIR": str(folder),
            "DJANGO_SETTINGS_MODULE": "frostproject.settings",
            "LANGUAGE_CODE": "en",
        }
        self.env = clean_environment(**(fixed | env))
        self._ends = contextlib.ExitStack()

    def start(
        self, *arguments: str, before: Sequence[str] = (), **options: Any
    ) -> "subprocess.Popen[str]":
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        command = [*before, sys.executable, "manage.py", "chat", *arguments]
        process = subprocess.Popen(
            command, cwd=PROJECT, env=self.env, **({"encoding": "utf-8"} | pipes | options)
        )
        self._ends.callback(process.wait)
        self._ends.callback(process.kill)
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            self._ends.callback(pipe.close)
        return process

    def start_unseen(self, *arguments: str) -> zygote.Process:
        """Without anything to read or to write, and cheaper."""
        null = subprocess.DEVNULL
        command = [sys.executable, "manage.py", "chat", *arguments]
        process = zygote.start(command, self.env, null, null, null)
        self._ends.callback(process.wait)
        self._ends.callback(process.send_signal, signal.SIGKILL)
        return process

    def end(self) -> None:
        """End what was started and still runs."""
        self._ends.close()

    def run(self, *arguments: str, typed: str | bytes = "") -> "subprocess.CompletedProcess[str]":
        return zygote.run(
            [sys.executable, "manage.py", "chat", *arguments], self.env, typed, timeout=SECONDS
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._execute(query)

    def change(self, statement: str) -> None:
        self._execute(statement)

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.folder / "frostagent.sqlite3", timeout=10)
        try:
            with connection:
                return connection.execute(statement).fetchall()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which nothing was said yet."""
    folder = tmp_path_factory.mktemp("chat") / "data"
    ended = Terminal(folder).run()
    assert (ended.returncode, ended.stdout) == (0, "")
    return folder


@pytest.fixture
def demo(prepared: Path, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(shutil.copytree(prepared, tmp_path / "data"))
    yield terminal
    terminal.end()


@pytest.fixture
def scripted(prepared: Path, tmp_path: Path, model: ScriptedModel) -> Iterator[Terminal]:
    env = {"UPSTREAM_ENDPOINT": model.url, "MODEL_NAME": "scripted"}
    terminal = Terminal(shutil.copytree(prepared, tmp_path / "data"), **env)
    yield terminal
    terminal.end()


@pytest.fixture
def hanging(scripted: Terminal, model: ScriptedModel) -> zygote.Process:
    """A chat that waits for the model's answer after a tool call."""
    model.script([call("get_weather", city="北京"), hangs()])
    process = scripted.start_unseen("--once", "北京天气")
    model.received(2, SECONDS)
    return process


def test_a_question_is_answered_with_a_tool_call_on_a_fresh_data_folder(tmp_path):
    fresh = Terminal(tmp_path / "data")
    ended = fresh.run("--once", "北京天气")
    assert ended.returncode == 0
    assert ended.stdout.startswith("北京 的天气是晴朗，温度 25°C")
    assert 'get_weather {"city": "北京"}' in ended.stderr
    assert fresh.rows("SELECT platform, account, kind, peer_id FROM agent_chatsession") == [
        ("terminal", "terminal", "private", "local")
    ]
    assert fresh.rows("SELECT origin, state FROM agent_run") == [("terminal", "finished")]
    assert fresh.rows("SELECT direction, state FROM agent_message") == [
        ("in", "answered"),
        ("out", "delivered"),
    ]
    assert fresh.rows("SELECT name FROM tools_toolconfig WHERE mock_enabled = 1 ORDER BY name") == [
        ("get_game_version",),
        ("get_weather",),
    ]


def test_lines_of_a_pipe_are_answered_in_turn_and_blank_ones_left_out(demo):
    ended = demo.run(typed="北京天气\n\n   \n我的世界最新版本")
    assert ended.returncode == 0
    assert [line.split(" ")[0] for line in ended.stdout.splitlines()] == ["北京", "我的世界"]


def test_what_was_said_is_remembered_by_the_next_process(scripted, model):
    model.script(["Hello Ann.", "You are Ann."])
    scripted.run("--once", "I am Ann")
    scripted.run("--once", "Who am I?")
    roles = [(m["role"], m["content"].splitlines()[-1]) for m in model.requests[1].messages[1:]]
    assert roles == [("user", "I am Ann"), ("assistant", "Hello Ann."), ("user", "Who am I?")]


def test_a_message_sent_by_a_tool_is_printed_at_once(scripted, model):
    parts = [
        {"type": "plain", "text": "one moment"},
        {"type": "image", "url": "https://example.org/a.png"},
    ]
    model.script([call("send_message", messages=parts), says("")])
    ended = scripted.run("--once", "hi")
    assert ended.stdout == "one moment[image: https://example.org/a.png]\n"
    assert scripted.rows("SELECT state FROM agent_message ORDER BY id") == [
        ("answered",),
        ("delivered",),
    ]


def test_a_failed_answer_says_sorry_and_ends_with_status_1(scripted, model):
    model.script([fails(401)])
    ended = scripted.run("--once", "hi")
    assert ended.returncode == 1
    assert "cannot answer right now" in ended.stdout
    assert scripted.rows("SELECT state FROM agent_message ORDER BY id") == [
        ("failed",),
        ("delivered",),
    ]


def test_text_that_no_database_can_hold_is_mended(demo):
    assert demo.run(typed=b"a\0b \xff c").returncode == 0
    assert demo.rows("SELECT state, text FROM agent_message WHERE direction = 'in'") == [
        ("answered", "a\ufffdb \ufffd c")
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_chat_that_is_broken_off_leaves_nothing_running(scripted, hanging, number):
    hanging.send_signal(number)
    assert hanging.wait(SECONDS) == 130
    assert scripted.rows("SELECT state FROM agent_message") == [("failed",)]
    assert scripted.rows("SELECT state, error FROM agent_run") == [
        ("interrupted", "the terminal was closed before the answer"),
    ]
    assert scripted.rows("SELECT id FROM agent_serverprocess") == []


def test_a_chat_in_the_background_of_a_script_hears_sigterm_and_no_ctrl_c(scripted, model):
    model.script([held("北京很晴朗")])
    script = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    process = scripted.start("--once", "北京天气", before=script)
    model.received(1, SECONDS)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 130
    assert scripted.rows("SELECT state FROM agent_message") == [("failed",)]


def test_a_killed_chat_is_settled_at_the_next_start_and_not_answered(scripted, hanging, model):
    hanging.send_signal(signal.SIGKILL)
    hanging.wait()
    assert scripted.rows("SELECT state FROM agent_run") == [("running",)]
    scripted.change(
        "UPDATE agent_serverprocess SET last_seen_at = '2001-01-01'"
    )  # its lease runs out
    model.script(["new"])
    assert scripted.run("--once", "another").stdout == "new\n"
    assert scripted.rows("SELECT state FROM agent_run ORDER BY id") == [
        ("interrupted",),
        ("finished",),
    ]
    assert scripted.rows("SELECT state FROM agent_message ORDER BY id") == [
        ("failed",),
        ("answered",),
        ("delivered",),
    ]
    assert "北京天气" not in json.dumps(model.requests[-1].body, ensure_ascii=False)


def test_tool_calls_that_never_began_do_not_stay_waiting(scripted, model):
    weather, coder = (
        ToolCall("use_subagent", {"subagent_name": "Coder", "content": "x"}),
        ToolCall("get_weather", {"city": "a"}),
    )
    model.script([calls(weather, coder), hangs()])
    process = scripted.start_unseen("--once", "hi")
    model.received(2, SECONDS)
    process.send_signal(signal.SIGINT)
    process.wait(SECONDS)
    assert scripted.rows("SELECT state FROM agent_toolcall ORDER BY position") == [
        ("unknown",),
        ("failed",),
    ]


def test_a_chat_and_a_server_work_on_one_data_folder(live, model):
    model.script(["beside the server"])
    terminal = Terminal(live.data_dir, **(live.env | {"LANGUAGE_CODE": "en"}))
    assert terminal.run("--once", "hi").stdout == "beside the server\n"
    assert live.is_healthy()
    assert terminal.rows("SELECT state FROM agent_run WHERE origin = 'terminal'") == [("finished",)]


def test_a_person_at_a_terminal_is_asked_and_ends_with_ctrl_d(demo):
    ours, theirs = pty.openpty()
    process = demo.start(stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = ""
    while "> " not in seen:
        seen += os.read(ours, 1024).decode()
    os.write(ours, b"\x04")
    assert process.wait(SECONDS) == 0
    os.close(ours)
    assert "Model: demo" in seen
