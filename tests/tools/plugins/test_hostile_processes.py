"""Plugins that harm their own process, or try to harm the machine. Each time the plugin beside them
goes on answering."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from tests.tools.plugins.hosting import LIMITS, becomes, gone, hosted, plugin
from tools.models import PluginStatus
from tools.plugins import link, supervisor
from tools.plugins.process import MIB, ProcessLimits, RunnerProcess
from tools.processes.child import find_descendants

pytestmark = [
    pytest.mark.live,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="descendants are found through /proc"
    ),
]

HEAD = """
import asyncio, ctypes, os, sys, threading, time
from tools.plugin_sdk import Plugin, Tool
"""


def small(**limits: int) -> ProcessLimits:
    values = {
        "memory_bytes": LIMITS.memory_bytes,
        "cpu_seconds": 30,
        "open_files": 256,
        "processes": 8,
    }
    return ProcessLimits(**(values | limits))


ENDS = [
    ("os._exit(3)", "exit code 3"),
    ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ("ctypes.string_at(0)", "SIGSEGV"),
]


async def test_a_process_that_ends_in_a_call_costs_that_call_alone(tmp_path):
    tools = [
        f"@Tool\nasync def end{number}():\n    {ends}\n" for number, (ends, _) in enumerate(ENDS)
    ]
    plugin(tmp_path, "bad", "\n".join([HEAD, *tools]))
    plugin(tmp_path, "good")
    async with hosted(tmp_path, crashes=len(ENDS) + 1) as hosting:
        await hosting.enable("bad", "good")
        for number, (_, reason) in enumerate(ENDS):
            result = await hosting.call(f"end{number}")
            assert "插件 test.bad 在执行时崩溃" in result.error_message
            assert await hosting.greets()
            await hosting.crash("bad", reason)
            running = PluginStatus.objects.filter(state="running", crashes=number + 1)
            await hosting.until(running.first)


async def test_who_kills_the_process_that_watches_over_it_ends_as_well(tmp_path):
    tool = "@Tool\ndef patricide() -> str:\n    os.kill(os.getppid(), 9)\n    time.sleep(600)\n"
    plugin(tmp_path, "bad", HEAD + tool)
    async with hosted(tmp_path) as hosting:
        await hosting.enable("bad")
        runner = (await hosting.state("bad", "running")).runner_pid
        assert "崩溃" in (await hosting.call("patricide")).error_message
        await hosting.crash("bad", "watches over it was killed")
        assert await gone(runner)


async def test_who_crashes_again_and_again_is_given_up_until_the_operator_says_so(tmp_path):
    source = f"{HEAD}\nprint('I go', file=sys.stderr, flush=True)\nos._exit(7)\n"
    plugin(tmp_path, "bad", source, tools=[{"name": "stay", "description": "Stay."}])
    plugin(tmp_path, "good")
    async with hosted(tmp_path) as hosting:
        await hosting.enable("good")
        await hosting.change("bad", enabled=True)
        row = await hosting.state("bad", "broken")
        assert (row.crashes, "exit code 7" in row.error) == (3, True)
        assert (await hosting.crash("bad")).detail == "I go"
        assert "插件 test.bad 多次崩溃，已停止运行" in (await hosting.call("stay")).error_message
        assert await hosting.greets()
        await hosting.change("bad", reloads=1)
        await hosting.until(
            lambda: (
                row._meta.model.objects.exclude(state="broken").filter(plugin__folder="bad").first()
            )
        )


async def test_who_never_finishes_loading_is_ended_and_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "TURN_SECONDS", 0.1)
    monkeypatch.setattr(link, "LOAD_SECONDS", 6)  # the good one has no more
    for name in ("bad", "worse"):
        plugin(tmp_path, name, f"{HEAD}\ntime.sleep(600)\n")
    plugin(tmp_path, "good")
    async with hosted(tmp_path, crashes=1) as hosting:
        for name in ("bad", "worse"):
            await hosting.found(name)
            await hosting.change(name, enabled=True)
        await hosting.enable("good")
        assert await hosting.greets()
        assert "within 6 s" in (await hosting.state("bad", "broken")).error


async def test_children_that_are_too_many_end_their_plugin_and_none_is_left(tmp_path):
    bomb = (
        "for _ in range(30):\n        if os.fork() == 0:\n            os.setsid()\n"
        "            time.sleep(600)\n    time.sleep(600)"
    )
    plugin(tmp_path, "bad", f"{HEAD}\n@Tool\ndef bomb():\n    {bomb}\n")
    plugin(tmp_path, "good")
    async with hosted(tmp_path, small(), look=0.5) as hosting:
        await hosting.enable("bad", "good")
        runner = (await hosting.state("bad", "running")).runner_pid
        calling = asyncio.create_task(hosting.call("bomb"))
        below = await becomes(lambda: len(found := find_descendants(runner)) > 20 and found)
        assert "崩溃" in (await calling).error_message
        await hosting.crash("bad", "8 are allowed")
        assert await gone(*below)
        assert await hosting.greets()


async def test_a_few_children_are_nobodys_business_and_end_with_the_plugin(tmp_path):
    source = (
        "@Tool\ndef fork() -> str:\n    pid = os.fork()\n    if pid == 0:\n"
        "        time.sleep(600)\n    return str(pid)\n"
    )
    plugin(tmp_path, "forks", HEAD + source)
    async with hosted(tmp_path, small()) as hosting:
        await hosting.enable("forks")
        child = int((await hosting.call("fork")).content)
        assert (await hosting.call("fork")).success
        await hosting.change("forks", enabled=False)
        assert await gone(child)


async def test_memory_of_all_its_processes_counts_together(tmp_path):
    leak = (
        "for _ in range(4):\n        if os.fork() == 0:\n            kept = b'x' * 100 * 2**20\n"
        "            time.sleep(600)\n"
    )
    plugin(tmp_path, "bad", f"{HEAD}\n@Tool\ndef leak():\n    {leak}    time.sleep(600)\n")
    async with hosted(tmp_path, small(memory_bytes=256 * MIB)) as hosting:
        await hosting.enable("bad")
        assert "崩溃" in (await hosting.call("leak")).error_message
        await hosting.crash("bad", "MiB of memory")


async def test_a_call_that_computes_too_long_ends_its_process(tmp_path):
    plugin(tmp_path, "bad", f"{HEAD}\n@Tool\ndef burn():\n    while True: pass\n")
    async with hosted(tmp_path, small(cpu_seconds=1)) as hosting:
        await hosting.enable("bad")
        assert "崩溃" in (await hosting.call("burn")).error_message
        await hosting.crash("bad", "processor time")


async def test_a_blocked_loop_is_found_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "HEALTH_SECONDS", 3)  # the good one has no more
    plugin(tmp_path, "bad", f"{HEAD}\n@Tool\nasync def block():\n    time.sleep(600)\n")
    plugin(tmp_path, "good")
    async with hosted(tmp_path, health=0.2) as hosting:
        await hosting.enable("bad", "good")
        assert "崩溃" in (await hosting.call("block")).error_message
        await hosting.crash("bad", "did not answer")
        assert await hosting.greets()


async def test_a_blocked_thread_holds_up_nobody(tmp_path):
    blocks = (
        "@Tool\ndef block():\n    time.sleep(600)\n\n@Tool\ndef quick() -> str:\n"
        "    return 'quick'\n"
    )
    plugin(tmp_path, "bad", HEAD + blocks)
    async with hosted(tmp_path) as hosting:
        await hosting.enable("bad")
        calling = asyncio.create_task(hosting.call("block"))
        await asyncio.sleep(0)
        assert (await hosting.call("quick")).content == "quick"
        calling.cancel()
        assert (await hosting.call("quick")).content == "quick"


async def test_who_ignores_that_it_is_to_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "UNLOAD_SECONDS", 0.3)
    ignores = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)

class Stays(Plugin):
    @Tool
    async def stay(self) -> str:
        return str(os.getpid())

    async def on_unload(self):
        time.sleep(600)
"""
    plugin(tmp_path, "bad", HEAD + ignores)
    async with hosted(tmp_path) as hosting:
        await hosting.enable("bad")
        runner = int((await hosting.call("stay")).content)
    assert await gone(runner)


def own_pipes() -> set[str]:
    """The pipes that are open here. Other threads open files and sockets at any moment."""
    found = set[str]()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return {one for one in found if one.startswith("pipe:")}


async def test_a_start_that_is_cancelled_at_any_step_leaves_no_process_and_no_pipe(tmp_path):
    folder = plugin(tmp_path, "good")
    pipes, processes = own_pipes(), find_descendants(os.getpid())
    for steps in range(12):
        starting = asyncio.create_task(RunnerProcess.spawn(folder, lambda _name, _line: None))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).kill()
        await asyncio.sleep(0)
    assert find_descendants(os.getpid()) == processes
    assert own_pipes() <= pipes
