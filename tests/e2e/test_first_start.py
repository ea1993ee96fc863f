"""The first start makes what is missing, once; a wrong setting stops it; nothing secret is ever
printed."""

import asyncio
import contextlib
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests import zygote
from tests.cast import fresh_id
from tests.environment import PATIENCE, clean_environment
from tests.fake_onebot import FakeOneBot, handshake_status, spoken
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer, free_port
from tests.scripted_model import fails

BOTH = pytest.mark.parametrize("program", ["runserver", "daphne"])
SHOWN = re.compile(r"^Password \(shown only now\): (\S+)$", re.MULTILINE)


def logs_in(server: LiveServer, name: str, password: str) -> bool:
    """Whether the admin's login page lets this account in."""
    with requests.Session() as browser:
        browser.trust_env = False
        url = f"{server.url}/admin/login/"
        token = re.search(
            r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get(url, timeout=PATIENCE).text
        )
        assert token
        form = {
            "username": name,
            "password": password,
            "csrfmiddlewaretoken": token[1],
            "next": "/admin/",
        }
        return browser.post(url, form, allow_redirects=False, timeout=PATIENCE).status_code == 302


# --- The administrator --------------------------------------------------------------


@BOTH
def test_a_password_is_made_up_and_shown_on_the_first_start_only(start_server, program):
    unset = {"DJANGO_SUPERUSER_USERNAME": "", "DJANGO_SUPERUSER_PASSWORD": ""}
    # One of the two as on a new machine: the command itself.
    server = start_server(
        program, fresh=program == "runserver", empty=True, LANGUAGE_CODE="en", **unset
    )
    (password,) = SHOWN.findall(server.log)
    assert len(password) >= 12
    assert logs_in(server, "admin", password)
    assert not logs_in(server, "admin", "admin")
    server.restart()
    assert len(SHOWN.findall(server.log)) == 1
    assert server.log.count(password) == 1


def test_an_account_that_is_named_in_the_environment_is_made_and_never_printed(start_server):
    server = start_server(
        empty=True,
        DJANGO_SUPERUSER_USERNAME="olga",
        DJANGO_SUPERUSER_PASSWORD="correct horse battery",
        DJANGO_SUPERUSER_EMAIL="olga@example.org",
        LANGUAGE_CODE="en",
    )
    account = server.rows("SELECT username, email, is_superuser FROM auth_user")
    assert account == [{"username": "olga", "email": "olga@example.org", "is_superuser": 1}]
    assert logs_in(server, "olga", "correct horse battery")
    assert "correct horse battery" not in server.log
    assert not SHOWN.search(server.log)


# --- The data folder ----------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_the_first_start_leaves_is_its_owners_alone_and_stays_as_it_is(start_server):
    server = start_server(empty=True)
    assert mode(server.data_dir) == 0o700
    assert mode(server.data_dir / "secret_key") == 0o600
    key = (server.data_dir / "secret_key").read_text()
    server.restart(DJANGO_SUPERUSER_USERNAME="somebody", DJANGO_SUPERUSER_PASSWORD="other words")
    assert (server.data_dir / "secret_key").read_text() == key
    assert server.rows("SELECT username FROM auth_user") == [{"username": ADMIN}]
    assert logs_in(server, ADMIN, ADMIN_PASSWORD)


@BOTH
def test_a_second_server_on_the_same_data_folder_refuses_to_start(live, program):
    status, errors = start(program, FROST_DATA_DIR=str(live.data_dir), LANGUAGE_CODE="en")
    assert status != 0
    assert f"Another server already works on this data folder: {live.data_dir}" in errors
    assert live.is_healthy()


# --- Wrong settings -----------------------------------------------------------------


def start(program: str, **env: str) -> tuple[int, str]:
    """Try to start a server that will not; its exit status and what it said on stderr."""
    port = str(free_port())
    commands = {
        "runserver": ["manage.py", "runserver", f"127.0.0.1:{port}", "--noreload"],
        "daphne": ["-m", "daphne", "-b", "127.0.0.1", "-p", port, "frostproject.asgi:application"],
    }
    environment = clean_environment(**{"DJANGO_SETTINGS_MODULE": "frostproject.settings", **env})
    try:
        ended = zygote.run([sys.executable, *commands[program]], environment, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        pytest.fail("it started")
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_ITERATIONS", "lots"),
        ("DATABASE_URL", "mysql://root:s3cret@127.0.0.1/frost"),
        ("REDIS_URL", "http://:s3cret@127.0.0.1:1"),
        ("FROST_DATA_DIR", "/dev/null/data"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name(tmp_path, name, value):
    """One of them all, and those whose value is a secret or a place; the table is that of
    ``tests/frostproject/configuration/test_settings.py``."""
    status, errors = start("runserver", **{"FROST_DATA_DIR": str(tmp_path), name: value})
    assert status not in (0, None)
    assert f"{name}: " in errors.strip().splitlines()[-1]
    assert "s3cret" not in errors


def test_a_wrong_setting_stops_the_daphne_command_too(tmp_path):
    status, errors = start("daphne", FROST_DATA_DIR=str(tmp_path), MAX_ITERATIONS="lots")
    assert status != 0
    assert "MAX_ITERATIONS: " in errors.strip().splitlines()[-1]


# --- Secrets ------------------------------------------------------------------------

SECRETS = {
    "ONEBOT_ACCESS_TOKEN": "onebot-token-7f3a",
    "HTTP_API_TOKEN": "http-token-91bc",
    "UPSTREAM_API_KEY": "sk-upstream-4d2e",
    "CODER_API_KEY": "sk-coder-88aa",
}
GUESS = "a-wrong-guess-5c5c"


async def ask_all_doors(server: LiveServer) -> None:
    """Handshakes and questions with the right token and with a wrong one, in every place a token
    may stand."""
    token = SECRETS["ONEBOT_ACCESS_TOKEN"]
    for given in (token, GUESS):
        await handshake_status(f"{server.ws_url}?access_token={given}", self_id=fresh_id())
        await handshake_status(server.ws_url, self_id=fresh_id(), token=given)
        await handshake_status(server.ws_url, self_id=fresh_id(), headers={"Authorization": given})
    for given in (SECRETS["HTTP_API_TOKEN"], GUESS):
        await asyncio.to_thread(post, f"{server.url}/agent/query?access_token={given}", given)
    await asyncio.to_thread(
        requests.get, f"{server.url}/ws/frostagent?access_token={token}", timeout=PATIENCE
    )
    assert not await asyncio.to_thread(logs_in, server, ADMIN, GUESS)


def post(url: str, token: str) -> None:
    with contextlib.closing(
        requests.post(
            url, "no json", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE
        )
    ) as answer:
        assert answer.status_code in (400, 401)


@BOTH
async def test_no_token_key_or_password_is_ever_logged_or_recorded(start_server, model, program):
    model.answer_with(
        lambda request: fails(
            401, message=f"Incorrect API key provided: {SECRETS['UPSTREAM_API_KEY']}"
        )
    )
    server, user = await asyncio.to_thread(start_server, program, empty=True, **SECRETS), fresh_id()
    await ask_all_doors(server)
    async with FakeOneBot(server.ws_url, fresh_id(), token=SECRETS["ONEBOT_ACCESS_TOKEN"]) as bot:
        await bot.say_private(user, "hi")
        apology = spoken(await bot.next_action())
    log = await server.logged("was not answered")
    secrets = [
        *SECRETS.values(),
        GUESS,
        ADMIN_PASSWORD,
        (server.data_dir / "secret_key").read_text(),
    ]
    assert [secret for secret in secrets if secret in log] == []
    assert SECRETS["UPSTREAM_API_KEY"] not in apology
    rows = [
        server.rows(f"SELECT * FROM {table}")
        for table in ("agent_run", "agent_step", "agent_message")
    ]
    assert "401" in str(rows)
    assert SECRETS["UPSTREAM_API_KEY"] not in str(rows)
