"""Guessing passwords is slow and seen, and costs nobody else anything."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from frostproject.signin.gate import (
    ADDRESS,
    CHECKS_AT_ONCE,
    MAX_WAITING,
    PasswordQueue,
    PasswordQueueFull,
)
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.fake_onebot import spoken
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer
from tests.security.accounts import START_SECONDS
from tests.security.browser import LOGIN, Browser

WRONG = "not the password"
ATTACKER = "127.0.0.9"


@pytest.fixture
def server(model_server):
    server = LiveServer(scripted_env(model_server))
    try:
        yield server.start(START_SECONDS)
    finally:
        server.remove()


def guess(browser: Browser, times: int, name: str = ADMIN) -> list[int]:
    return [browser.sign_in(name, WRONG).status_code for _ in range(times)]


async def test_a_flood_of_sign_ins_keeps_no_chat_waiting(start_server, model):
    model.answer_with(lambda request: "at once")
    # A password takes as long as it does in the product.
    server = start_server(DJANGO_SETTINGS_MODULE="frostproject.settings")
    browsers = [Browser(server, f"127.0.9.{number}") for number in range(1, 6)]
    with ThreadPoolExecutor(50) as pool:
        await asyncio.gather(*(asyncio.to_thread(browser.token) for browser in browsers))
        async with client(server) as bot:
            asked = [
                pool.submit(browser.sign_in, f"name{n}", WRONG)
                for browser in browsers
                for n in range(10)
            ]
            heard = 0
            while not all(each.done() for each in asked):
                await bot.say_private(fresh_id(), "hi")
                assert spoken(await bot.next_action()) == "at once"
                heard += 1
            statuses = [each.result().status_code for each in asked]
    assert heard > 5  # who waited for the sign-ins would have been answered behind them
    assert set(statuses) <= {200, 503}
    assert statuses.count(503) > 0  # the line is short
    assert server.is_healthy()


def test_one_address_that_guesses_is_slowed_and_others_are_not(server):
    attacker = Browser(server, ATTACKER)
    while (refused := attacker.sign_in(password=WRONG)).status_code != 429:
        assert refused.status_code == 200
    hashed = failed(server)
    assert ADDRESS.burst <= hashed < 2 * ADDRESS.burst
    while attacker.sign_in(password=WRONG).status_code != 429:  # after six seconds one is let in
        hashed = failed(server)
    assert failed(server) == hashed  # nothing was computed for it
    assert 1 <= int(refused.headers["Retry-After"]) <= ADDRESS.seconds
    assert "too many tries" in refused.text
    assert "csrfmiddlewaretoken" not in refused.text
    assert Browser(server, "127.0.0.10").sign_in().status_code == 302


def failed(server) -> int:
    return int(
        server.rows("SELECT sum(count) AS total FROM frostproject_failedsignins")[0]["total"] or 0
    )


async def test_failures_are_one_line_a_minute_and_a_count_on_the_first_page(server):
    attacker = Browser(server, ATTACKER)
    name = "adm\nin\x1b[31m" + 500 * "x"
    await asyncio.to_thread(guess, attacker, 3, name)
    await asyncio.to_thread(guess, attacker, 2)
    log = await server.logged("A sign-in failed")
    assert log.count("A sign-in failed") == 1
    line = next(line for line in log.splitlines() if "A sign-in failed" in line)
    assert ATTACKER in line
    assert len(line) < 300
    assert "\x1b" not in log
    assert WRONG not in log
    owner = Browser(server)
    assert (await asyncio.to_thread(owner.sign_in)).status_code == 302
    page = (await asyncio.to_thread(owner.get)).text
    assert f"5 failed sign-ins in the last 24 hours, the last from {ATTACKER}" in page
    assert "2 sign-ins to your account failed since you signed in last" in page
    assert "after 2 failed tries" in (await asyncio.to_thread(owner.get, "/admin/?more=1")).text
    await server.logged(", after 2 failed tries")
    server.terminate()
    assert "more like it before" in server.log
    assert WRONG not in b"".join(
        file.read_bytes() for file in server.data_dir.glob("*.sqlite3*")
    ).decode("latin1")


def test_guessing_the_old_password_in_a_session_is_slowed_too(server):
    thief, honest = Browser(server, proxied="203.0.113.9"), Browser(server)
    thief.sign_in()
    honest.sign_in()
    form = {
        "old_password": WRONG,
        "new_password1": "a brand new one 42",
        "new_password2": "a brand new one 42",
    }
    while thief.post("/admin/password_change/", form).status_code != 429:
        pass
    assert failed(server) >= ADDRESS.burst
    assert (
        honest.post("/admin/password_change/", {**form, "old_password": ADMIN_PASSWORD}).status_code
        == 302
    )
    assert Browser(server).sign_in(password="a brand new one 42").status_code == 302


FORM = "application/x-www-form-urlencoded"
NO_FORMS = [
    (b"username=admin&password=" + 70_000 * b"x", FORM, 413),
    (b"--x\r\nnot a part", "multipart/form-data; boundary=x", 403),
    (b"garbage", "multipart/form-data", 400),
    (b"&".join([b"a=1"] * 3_000), FORM, 400),
    (b"username=admin&password=x", f"{FORM}; charset=utf-16", 400),
    (b"username=admin&password=x", f"{FORM}; charset=idna", 400),
    (b"--x\r\nnot a part", "multipart/form-data; boundary=x; charset=utf-16", 403),
]


def test_what_is_no_form_is_refused_in_words(server):
    for body, kind, status in NO_FORMS:
        browser = Browser(server)
        answer = browser.session.post(
            server.url + LOGIN, body, headers={"Content-Type": kind}, timeout=20
        )
        assert answer.status_code in (status, 403), kind
        assert "Traceback" not in server.log, kind
        assert browser.sign_in().status_code == 302, kind


# --- The parts by themselves ----------------------------------------------------


async def test_known_browsers_have_their_turn_first_and_a_full_line_is_told_at_once():
    turns, order = PasswordQueue(), []

    async def check(name: str, *, is_known: bool = False) -> None:
        await turns.acquire(is_known=is_known)
        order.append(name)

    await asyncio.gather(*(check(f"first {n}") for n in range(CHECKS_AT_ONCE)))
    line = [asyncio.create_task(check(f"stranger {n}")) for n in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(PasswordQueueFull):
        await turns.acquire(is_known=False)
    owner = asyncio.create_task(check("owner", is_known=True))
    await asyncio.sleep(0)
    line[0].cancel()
    await asyncio.sleep(0)
    turns.release()
    turns.release()
    await asyncio.gather(owner, line[1])
    assert order[CHECKS_AT_ONCE:] == ["owner", "stranger 1"]
    for waiting in line[2:]:
        waiting.cancel()
    await asyncio.gather(*line, return_exceptions=True)
    turns.release()
    turns.release()
    await asyncio.gather(*(check("again") for _ in range(CHECKS_AT_ONCE)))


async def test_a_turn_that_comes_with_the_cancellation_is_not_lost():
    turns = PasswordQueue()
    for _ in range(CHECKS_AT_ONCE):
        await turns.acquire(is_known=False)
    waiting = asyncio.create_task(turns.acquire(is_known=False))
    await asyncio.sleep(0)
    turns.release()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(1):
        await turns.acquire(is_known=False)
