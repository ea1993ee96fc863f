"""A token is wanted from the first start on, from wherever; who trusts this machine's programs says
so."""

import asyncio
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import zygote
from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.environment import PROJECT, clean_environment
from tests.fake_onebot import FakeOneBot, handshake_status, spoken
from tests.live_server import LiveServer
from tests.security.wire import ask, connected, status

PROXIED = [
    *(
        "X-Real-IP: 1.2.3.4",
        "x-REAL-ip: 1.2.3.4",
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Host: localhost",
        "X-Forwarded:",
    ),
    *(
        "X-Forwarded-Proto: http",
        "X-Forwarded-Whatever: 1",
        "Forwarded: for=127.0.0.1",
        "Via: 1.1 x",
        "X-Client-IP: 127.0.0.1",
    ),
    *("CF-Connecting-IP: 127.0.0.1", "True-Client-IP: ::1", "CF-Ray: 1"),
]
FOREIGN_HOSTS = [
    "bot.example.org",
    "localhost.",
    "127.1",
    "[::ffff:127.0.0.1]",
    "localhost.example",
    "127.0.0.1@example",
    "",
    "0",
]
UPGRADE = (
    *(
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
    ),
    "X-Client-Role: Universal",
)
QUESTION = b'{"input": "hi"}'


def printed(server: LiveServer) -> str:
    """The token that the terminal showed."""
    found = re.findall(r"^Access token: (\S{32})$", server.log, re.MULTILINE)
    assert len(found) == 1, server.log
    return str(found[0])


def kept(server: LiveServer, name: str) -> str:
    return (server.data_dir / name).read_text()


@pytest.fixture
def plain(start_server):
    """A server as a newcomer starts it: no setting says anything of tokens."""
    return start_server(
        ONEBOT_ACCESS_TOKEN="", HTTP_API_TOKEN="", TRUST_LOOPBACK="", LANGUAGE_CODE="en"
    )


def dial(
    server: LiveServer, *headers: str, host: str = "127.0.0.1", target: str = "/ws/frostagent"
) -> int:
    """The status of a handshake, byte by byte; the connection of one that is let in is dropped."""
    request = "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *UPGRADE, *headers, "", ""])
    with connected(server) as connection:
        connection.sendall(request.encode("latin1"))
        return status(connection.recv(65536))


def question(server: LiveServer, *headers: str, host: str = "127.0.0.1") -> int:
    lines = [
        "POST /agent/query HTTP/1.1",
        f"Host: {host}",
        f"Content-Length: {len(QUESTION)}",
        "Connection: close",
        *headers,
    ]
    return status(ask(server, "\r\n".join([*lines, "", ""]).encode("latin1") + QUESTION))


# --- The first start ----------------------------------------------------------------


async def test_what_a_newcomer_pastes_into_a_client_leads_to_an_answer(plain, model):
    model.script(["hello"])
    (url,) = re.findall(r"^  (ws://127\.0\.0\.1:\d+/ws/frostagent)$", plain.log, re.MULTILINE)
    async with FakeOneBot(url, fresh_id(), token=printed(plain)) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "hello"
    assert await handshake_status(f"{url}?access_token={printed(plain)}", self_id=fresh_id()) == 101


def test_without_a_token_nobody_gets_in_not_even_on_this_machine(plain, model):
    assert dial(plain) == 403
    assert question(plain) == 401
    model.script(["42"])
    assert question(plain, f"Authorization: Bearer {kept(plain, 'http_api_token')}") == 200
    assert question(plain, f"Authorization: Bearer {kept(plain, 'onebot_access_token')}") == 401


def test_the_tokens_are_files_of_their_owner_alone_and_stay(plain):
    for name in ("onebot_access_token", "http_api_token"):
        assert stat.S_IMODE((plain.data_dir / name).stat().st_mode) == 0o600
    before = printed(plain), kept(plain, "http_api_token")
    assert before[0] == kept(plain, "onebot_access_token")
    assert before[1] not in plain.log
    plain.restart()
    assert (
        printed(plain),
        kept(plain, "http_api_token"),
    ) == before  # shown once: nobody looks at this terminal
    assert f"Access token: in the file {plain.data_dir / 'onebot_access_token'}" in plain.log


def test_an_installation_from_before_is_given_tokens_at_its_next_start(start_server):
    server = start_server(TRUST_LOOPBACK="", LANGUAGE_CODE="en")
    assert not (server.data_dir / "onebot_access_token").exists()
    server.restart(ONEBOT_ACCESS_TOKEN="", HTTP_API_TOKEN="")
    assert dial(server) == 403
    assert dial(server, f"Authorization: Bearer {TOKEN}") == 403
    assert dial(server, f"Authorization: Bearer {printed(server)}") == 101


def test_the_environment_wins_over_the_file(start_server):
    server = start_server(ONEBOT_ACCESS_TOKEN="", TRUST_LOOPBACK="", LANGUAGE_CODE="en")
    made = printed(server)
    server.restart(ONEBOT_ACCESS_TOKEN="chosen by the owner")
    assert dial(server, f"Authorization: Bearer {made}") == 403
    assert dial(server, "Authorization: Bearer chosen by the owner") == 101
    assert "chosen by the owner" not in server.log


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"two words", b"two\nlines", "密钥".encode(), b"\xff\xfe", b"\x00"]
)
@pytest.mark.parametrize(
    ("name", "file"),
    [("ONEBOT_ACCESS_TOKEN", "onebot_access_token"), ("HTTP_API_TOKEN", "http_api_token")],
)
def test_a_file_that_holds_no_token_stops_the_start_with_what_to_do(tmp_path, name, file, content):
    (tmp_path / file).write_bytes(content)
    said = start(tmp_path)
    assert said.returncode != 0
    assert (
        said.stderr.strip().splitlines()[-1].startswith(f"{name}: {tmp_path / file} holds no token")
    )
    assert "delete the file" in said.stderr
    assert (tmp_path / file).read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"short", "密钥".encode() * 20, b"\xff\xfe", b"\x00" * 60]
)
def test_a_file_that_holds_no_secret_key_stops_it_too(tmp_path, content):
    """Sessions and sealed secrets would rest on what anybody guesses; and nobody is told to delete
    what they rest on."""
    (tmp_path / "secret_key").write_bytes(content)
    said = start(tmp_path)
    assert said.returncode != 0
    assert (
        said.stderr.strip()
        .splitlines()[-1]
        .startswith(f"FROST_DATA_DIR: {tmp_path / 'secret_key'} holds no secret key")
    )
    assert (tmp_path / "secret_key").read_bytes() == content


def test_a_file_that_cannot_be_read_stops_the_start_with_what_to_do(tmp_path):
    (tmp_path / "http_api_token").mkdir()
    said = start(tmp_path)
    assert said.returncode != 0
    assert "HTTP_API_TOKEN: " in said.stderr.strip().splitlines()[-1]
    assert "Is a directory" in said.stderr


def test_what_an_owner_wrote_into_the_file_is_the_token(tmp_path):
    (tmp_path / "onebot_access_token").write_bytes(b"my-own-token\r\n")
    assert start(tmp_path).stdout.startswith("my-own-token ")


def environment(folder: Path) -> dict[str, str]:
    return clean_environment(
        FROST_DATA_DIR=str(folder),
        DJANGO_SETTINGS_MODULE="frostproject.settings",
        LANGUAGE_CODE="en",
    )


def start(folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Have the settings read in a process of their own; it prints the tokens."""
    code = (
        "import django; django.setup(); from django.conf import settings as s; "
        "print(s.ONEBOT_ACCESS_TOKEN, s.HTTP_API_TOKEN)"
    )
    code = (
        f"import sys, django.core.exceptions as e\ntry:\n {code}\nexcept e.ImproperlyConfigured "
        f"as error: sys.exit(str(error))"
    )
    command, environ = [sys.executable, "-c", code], environment(folder) | env
    return zygote.run(command, environ)


def test_processes_that_start_at_once_agree_on_one_token(tmp_path):
    with ThreadPoolExecutor() as pool:
        said = {process.stdout for process in pool.map(start, [tmp_path] * 4)}
    assert len(said) == 1
    assert len(set(said.pop().split())) == 2
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == [
        "http_api_token",
        "onebot_access_token",
        "secret_key",
    ]


# --- Where loopback is trusted --------------------------------------------------------


@pytest.fixture(scope="module")
def trusting(model_server):
    with LiveServer(
        {"UPSTREAM_ENDPOINT": model_server.url, "MODEL_NAME": "scripted", "TRUST_LOOPBACK": "true"}
    ) as server:
        yield server


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:1234", "LocalHost", "[::1]:1234", "127.0.0.1:1"]
)
def test_where_loopback_is_trusted_a_program_of_this_machine_needs_no_token(trusting, model, host):
    model.script(["42"])
    assert dial(trusting, host=host) == 101
    assert question(trusting, host=host) == 200


@pytest.mark.parametrize("header", PROXIED)
def test_no_proxy_is_this_machine(trusting, model, header):
    assert dial(trusting, header) == 403
    assert question(trusting, header) == 401


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_no_other_host_is_this_machine(trusting, model, host):
    assert dial(trusting, host=host) in (400, 403)
    assert question(trusting, host=host) in (400, 401)


def test_a_second_host_a_missing_one_and_an_absolute_target_open_nothing(trusting, model):
    assert dial(trusting, "Host: bot.example.org") in (400, 403)
    assert question(trusting, "Host: bot.example.org") in (400, 401)
    assert dial(trusting, target="http://bot.example.org/ws/frostagent") != 101
    assert status(
        ask(trusting, b"POST /agent/query HTTP/1.0\r\nContent-Length: 15\r\n\r\n" + QUESTION)
    ) in (400, 401)


def test_a_wrong_token_is_refused_even_there(trusting, model):
    assert dial(trusting, "Authorization: Bearer wrong") == 403
    assert dial(trusting, target="/ws/frostagent?access_token=wrong") == 403
    assert question(trusting, "Authorization: Bearer wrong") == 401
    assert question(trusting, "Authorization: Token wrong") == 401


def test_pages_of_other_hosts_get_nothing_there(trusting, model):
    assert dial(trusting, "Origin: https://evil.example") == 403
    assert question(trusting, "Origin: https://evil.example") == 401
    assert question(trusting, "Origin: null") == 401


@pytest.mark.parametrize("word", ["maybe", "2", "loopback"])
def test_a_wrong_word_for_it_stops_the_start(tmp_path, word):
    assert start(tmp_path, TRUST_LOOPBACK=word).stderr.startswith("TRUST_LOOPBACK: ")


# --- The terminal -------------------------------------------------------------------


async def test_whoever_looks_on_is_shown_the_token_at_every_start(tmp_path):
    (tmp_path / "onebot_access_token").write_text("a-token-to-look-at")
    code = (
        "import sys, django; django.setup(); sys.stdout.isatty = lambda: True\n"
        "from frostproject.start import bootstrap; bootstrap.print_greeting(('127.0.0.1', 1))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        cwd=PROJECT,
        env=environment(tmp_path),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert b"ws://127.0.0.1:1/ws/frostagent" in said
    assert b"Access token: a-token-to-look-at" in said
