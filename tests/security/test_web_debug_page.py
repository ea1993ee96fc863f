"""With ``DEBUG=true`` anybody who names a wrong host sees Django's page of an error: it holds no
secret."""

from collections.abc import Callable
from pathlib import Path

import pytest

from frostproject.web import logs
from tests.live_server import LiveServer
from tests.security.wire import ask, status

#: A password with the signs that addresses and pages write in other ways.
WRITTEN = "pg%27pa%3Css%26word%22"
SECRETS = {
    "UPSTREAM_API_KEY": "sk-upstream-k4711",
    "CODER_API_KEY": "sk-coder-k4712",
    "ONEBOT_ACCESS_TOKEN": "onebot-token-k4713",
    "HTTP_API_TOKEN": "http&token<k4714>'",
    "MCP_SERVER_TOKEN": "mcp-token-k4715",
}
#: Whatever way the passwords are written: a part of each that none of the ways changes. Each has
#: a letter: the page is full of numbers, such as the addresses of the frames in memory.
PARTS = (
    "redispass",
    "pg'pa",
    "pg%27pa",
    "pg&#x27;pa",
    "ss%26word",
    "ss&amp;word",
    "k4711",
    "k4712",
    "k4713",
    "k4714",
    "k4715",
    "endpointpass",
)


def debugging(start_server: Callable[..., LiveServer], database: Path) -> LiveServer:
    return start_server(
        **SECRETS,
        DEBUG="true",
        DATABASE_URL=f"sqlite://me:{WRITTEN}@/{database}",
        REDIS_URL="redis://:redispass@127.0.0.1:9/0",
        CODER_ENDPOINT="http://me:endpointpass@127.0.0.1:9/v1",
        DJANGO_SUPERUSER_PASSWORD="admin-pass-k4711",
    )


def test_the_page_of_a_wrong_host_holds_no_secret(start_server, tmp_path):
    server = debugging(start_server, tmp_path / "db.sqlite3")
    for host in ("evil", "evil:80", "[::1", "a b", "redispass"):
        page = ask(
            server,
            f"GET /admin/?access_token=onebot-token-k4713 HTTP/1.1\r\nHost: "
            f"{host}\r\nAuthorization: Bearer wrong-k4711\r\n"
            "Cookie: sessionid=k4712\r\nX-Forwarded-For: 4.4.4.4\r\nConnection: "
            "close\r\n\r\n".encode(),
        )
        assert status(page) == 400
        assert b"DisallowedHost" in page
        assert b"REDIS_URL" in page
        assert [
            part for part in PARTS if part.encode() in page.replace(b"Host: " + host.encode(), b"")
        ] == []
    assert [part for part in PARTS if part in server.log] == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("REDIS_URL", "redis://:s3cret-redis@h:1/0", "redis://:***@h:1/0"),
        ("REDIS_URL", "rediss://user:s3cr%26t@h:1/0", "s3cr&t s3cr%26t"),
        ("DATABASE_URL", "postgres:///db?host=/tmp&password=s3cret-query", "s3cret-query"),
        ("UPSTREAM_ENDPOINT", "https://me:s3cret-proxy@h/v1", "https://me:s3cret-proxy@h/v1"),
    ],
)
def test_a_password_in_an_address_is_not_logged(settings, name, value, said):
    setattr(settings, name, value)
    assert "s3cr" not in logs.redact_secrets(said)
    assert "***" in logs.redact_secrets(said)


@pytest.mark.parametrize(
    "value", ["", "redis://localhost:6379/0", "unix:///run/redis.sock", "redis://user@h/1"]
)
def test_an_address_without_a_password_blots_out_nothing(settings, value):
    settings.REDIS_URL = value
    assert logs.redact_secrets(f"{value} is not there") == f"{value} is not there"
