"""What stands before a sign-in, judged by itself: who is counted as whom, and who waits. Nothing is
hashed here."""

import asyncio
import itertools
import threading
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpRequest, HttpResponse

from frostproject.signin import attempt
from frostproject.signin.attempt import ATTEMPT_KEY
from frostproject.signin.gate import (
    ADDRESS,
    CHECKS_AT_ONCE,
    KNOWN,
    MAX_WAITING,
    STRANGERS,
    SignInGate,
)

LOGIN = "/admin/login/"


class Behind:
    """The application behind the gate."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.succeeds = False
        self.at_once = self.most_at_once = 0
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.calls.append(scope)
        self.bodies.append((await receive())["body"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.open.wait()
        self.at_once -= 1
        scope[ATTEMPT_KEY].succeeded = self.succeeds
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Asker:
    """Sends requests through one gate."""

    def __init__(self) -> None:
        self.behind = Behind()
        self.gate = SignInGate(self.behind)
        self.text = ""
        self.headers: dict[bytes, bytes] = {}

    async def ask(
        self,
        name: str = "admin",
        peer: str = "192.0.2.1",
        *,
        path: str = LOGIN,
        body: bytes | None = None,
        kind: str = "application/x-www-form-urlencoded",
        hangs_up: asyncio.Event | None = None,
        **headers: str,
    ) -> int:
        """The status; 0 where there is no answer."""
        sent: list[MutableMapping[str, Any]] = []
        form = urlencode({"username": name, "password": "x"}).encode() if body is None else body
        waiting: list[dict[str, Any]] = [
            {"type": "http.request", "body": form[:20], "more_body": True},
            {"type": "http.request", "body": form[20:]},
        ]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop(0)
            await (hangs_up or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        given = {
            "host": "127.0.0.1",
            "content-type": kind,
            "content-length": str(len(form)),
            **{n.replace("_", "-"): v for n, v in headers.items()},
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "root_path": "",
            "query_string": b"",
            "client": (peer, 1),
            "headers": [(n.encode(), v.encode()) for n, v in given.items()],
        }
        await self.gate(scope, receive, send)
        self.headers = dict(sent[0]["headers"]) if sent else {}
        self.text = sent[1]["body"].decode() if sent else ""
        return sent[0]["status"] if sent else 0

    async def until_refused(self, *arguments: Any, **headers: Any) -> int:
        """How many tries were let through before one was not."""
        for number in range(200):
            if await self.ask(*arguments, **headers) == 429:
                return number
        raise AssertionError("never refused")


@pytest.fixture
async def asker():
    return Asker()


def cookie(name: str) -> str:
    answer = HttpResponse()
    attempt.remember_browser(HttpRequest(), answer, name)
    return f"{attempt.KNOWN_COOKIE}={answer.cookies[attempt.KNOWN_COOKIE].value}"


async def test_one_address_is_slowed_before_an_account_is(asker):
    assert await asker.until_refused() == ADDRESS.burst
    assert await asker.ask("another") == 429
    assert await asker.ask(peer="192.0.2.2") == 200
    assert asker.behind.bodies[0] == b"username=admin&password=x"


async def test_the_page_says_how_long_to_wait_in_the_language_of_who_asks(asker):
    await asker.until_refused()
    assert await asker.ask(accept_language="zh-CN,zh;q=0.9") == 429
    assert '<html lang="zh-hans"' in asker.text
    assert 1 <= int(asker.headers[b"retry-after"]) <= ADDRESS.seconds
    assert await asker.ask(accept_language="en") == 429
    assert "too many tries" in asker.text
    assert "<script>" not in asker.text
    assert "style=" not in asker.text


async def test_many_addresses_are_slowed_at_one_account_however_it_is_written(asker):
    spellings = ("admin", "ADMIN", " Admin ", "ａｄｍｉｎ")
    statuses = [
        await asker.ask(spellings[n % 4], f"192.0.2.{n}") for n in range(STRANGERS.burst + 1)
    ]
    assert statuses == [200] * STRANGERS.burst + [429]
    assert await asker.ask("else", "192.0.2.200") == 200


async def test_strangers_cannot_lock_out_whoever_signed_in_before(asker):
    """Not even from behind the same proxy, nor whoever sits at the machine."""
    for number in range(STRANGERS.burst + 1):
        await asker.ask(peer="127.0.0.1", x_forwarded_for=f"192.0.2.{number}")
    await asker.until_refused("x", "127.0.0.1", x_forwarded_for="198.51.100.1")
    assert (
        await asker.ask(peer="127.0.0.1", x_forwarded_for="198.51.100.2") == 429
    )  # whoever comes new waits
    mine = cookie("Admin")
    assert await asker.ask(peer="127.0.0.1", x_forwarded_for="198.51.100.1", cookie=mine) == 200
    assert await asker.ask(peer="127.0.0.1", host="127.0.0.1:1234") == 200
    assert await asker.until_refused("admin", "198.51.100.1", cookie=mine) == KNOWN.burst - 1


async def test_a_known_browser_is_a_stranger_to_other_accounts_and_cannot_be_made_up(asker):
    mine = cookie("admin")
    assert await asker.until_refused("other", cookie=mine) == ADDRESS.burst
    assert await asker.ask(cookie=mine) == 200
    assert await asker.ask(cookie=mine[:-1] + ("A" if mine[-1] != "A" else "B")) == 429
    assert await asker.ask(cookie=f"{attempt.KNOWN_COOKIE}=nonsense") == 429


async def test_a_known_browser_is_no_way_around_the_count_of_a_session(asker):
    """Whoever has an account here can have as many known browsers as he likes."""
    statuses = [
        await asker.ask(
            path="/admin/second-factor/check/", cookie=f"{cookie('mallory')}; sessionid=victims"
        )
        for _ in range(STRANGERS.burst + 1)
    ]
    assert statuses == [200] * STRANGERS.burst + [429]


async def test_a_network_of_ipv6_counts_as_one_address(asker):
    statuses = [await asker.ask(peer=f"2001:db8::{n:x}") for n in range(1, ADDRESS.burst + 2)]
    assert statuses[-1] == 429
    assert await asker.ask(peer="2001:db8:0:1::1") == 200


async def test_a_proxy_is_believed_about_the_last_address_alone(asker):
    """The others are whatever the client wrote; and nobody but a proxy on this machine is
    believed."""
    statuses = [
        await asker.ask(peer="127.0.0.1", x_forwarded_for=f"10.0.0.{n}, 192.0.2.9")
        for n in range(ADDRESS.burst + 1)
    ]
    assert statuses[-1] == 429
    statuses = [
        await asker.ask("b", "192.0.2.8", x_forwarded_for=f"192.0.2.{n}")
        for n in range(ADDRESS.burst + 1)
    ]
    assert statuses[-1] == 429
    assert await asker.ask("c", "127.0.0.1", x_forwarded_for="no address") == 200


async def test_a_form_in_parts_counts_for_the_account_that_django_will_see(asker):
    part = b'--x\r\nContent-Disposition: form-data; name="username"\r\n\r\n%s\r\n--x--\r\n'
    for number in range(STRANGERS.burst):
        body = part % b"admin"
        assert (
            await asker.ask(
                peer=f"192.0.2.{number}", body=body, kind="multipart/form-data; boundary=x"
            )
            == 200
        )
    assert await asker.ask(peer="198.51.100.1") == 429
    twice = b"username=other&username=admin"
    assert await asker.ask(peer="198.51.100.1", body=twice) == 429


async def test_success_gives_back_what_the_try_took_and_no_more(asker):
    await asker.ask()
    asker.behind.succeeds = True
    for _ in range(3 * ADDRESS.burst):
        assert await asker.ask() == 200
    asker.behind.succeeds = False
    assert await asker.until_refused() == ADDRESS.burst - 1


async def test_two_are_checked_at_a_time_few_wait_and_no_thread_does(asker):
    threads = threading.active_count()
    asker.behind.open.clear()
    asked = [asyncio.create_task(asker.ask("n", f"192.0.2.{n}")) for n in range(20)]
    asked += [asyncio.create_task(asker.ask("m", f"192.0.3.{n}")) for n in range(20)]
    refused = len(asked) - CHECKS_AT_ONCE - MAX_WAITING
    assert {await each for each in itertools.islice(asyncio.as_completed(asked), refused)} == {503}
    pending = [each for each in asked if not each.done()]
    assert len(pending) == CHECKS_AT_ONCE + MAX_WAITING
    assert threading.active_count() <= threads
    asker.behind.open.set()
    assert [await each for each in pending] == [200] * len(pending)
    assert asker.behind.most_at_once == CHECKS_AT_ONCE


async def test_whoever_hangs_up_leaves_the_line_and_is_not_checked(asker):
    asker.behind.open.clear()
    first = [asyncio.create_task(asker.ask(peer=f"192.0.2.{n}")) for n in range(CHECKS_AT_ONCE)]
    gone = asyncio.Event()
    waiting = [
        asyncio.create_task(asker.ask(peer=f"192.0.3.{n}", hangs_up=gone))
        for n in range(MAX_WAITING)
    ]
    await asyncio.sleep(0.05)
    gone.set()
    assert [await each for each in waiting] == [0] * MAX_WAITING
    asker.behind.open.set()
    assert [await each for each in first] == [200] * CHECKS_AT_ONCE
    assert len(asker.behind.calls) == CHECKS_AT_ONCE


async def test_a_check_that_is_cut_off_keeps_its_turn_until_it_ends(asker):
    """What goes on in a thread cannot be stopped, so another must not begin."""
    asker.behind.open.clear()
    first = [asyncio.create_task(asker.ask(peer=f"192.0.2.{n}")) for n in range(CHECKS_AT_ONCE)]
    while asker.behind.at_once < CHECKS_AT_ONCE:  # noqa: ASYNC110 - no bell rings
        await asyncio.sleep(0)
    for each in first:
        each.cancel()
    await asyncio.gather(*first, return_exceptions=True)
    another = asyncio.create_task(asker.ask(peer="192.0.3.1"))
    await asyncio.sleep(0.05)
    assert asker.behind.at_once == CHECKS_AT_ONCE
    assert len(asker.behind.calls) == CHECKS_AT_ONCE
    asker.behind.open.set()
    assert await another == 200


async def test_a_large_form_is_not_read_on(asker):
    assert await asker.ask(body=b"username=admin&password=" + 70_000 * b"x") == 413
    assert asker.behind.calls == []
