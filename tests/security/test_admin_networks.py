"""The admin, ``/mcp`` and ``/agent/query`` are for the networks that the owner names; behind https,
cookies are for https."""

import json
import re
import sys

import pytest
import requests

from tests.conftest import TOKEN
from tests.environment import PATIENCE
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer
from tests.security.wire import ask, connected, head, status

INSIDE, OUTSIDE = (
    "127.0.0.1",
    "127.0.0.9",
)  # an address that the test has, and that the settings do not name
CLOSED = [
    "/",
    "/admin/",
    "/admin/login/",
    "/static/admin/css/base.css",
    "/nowhere",
    "/agent/query",
    "/mcp",
    "//admin/login/",
]
OPEN = ["/health", "/ready"]
CLAIMS = [
    *(
        "X-Forwarded-For: 127.0.0.1",
        "X-Real-IP: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "CF-Connecting-IP: 10.0.0.1",
    ),
    *(
        "True-Client-IP: ::1",
        "X-Client-IP: 192.168.1.1",
        "Host: localhost",
        "Daphne-Root-Path: /health",
        "X-Forwarded-Host: x",
    ),
]


@pytest.fixture(scope="module")
def narrow(model_server):
    env = {
        "ADMIN_NETWORKS": f"{INSIDE}/32, 203.0.113.7",
        "MCP_SERVER_TOKEN": "m" * 20,
        "HTTP_API_TOKEN": TOKEN,
    }
    with LiveServer(
        {**env, "ONEBOT_ACCESS_TOKEN": TOKEN, "UPSTREAM_ENDPOINT": model_server.url}
    ) as server:
        yield server


def reply(server: LiveServer, source: str, path: str, *headers: str, method: str = "GET") -> bytes:
    return ask(server, head(method, path, "Connection: close", *headers), source)


@pytest.mark.parametrize("path", CLOSED)
def test_others_get_a_403_that_says_how_to_open_it(narrow, path):
    said = reply(narrow, OUTSIDE, path).decode()
    assert status(said.encode()) == 403
    assert f"ADMIN_NETWORKS=private,{OUTSIDE}" in said
    assert "服务器看到的你的地址是" in said
    assert "The server sees you at the address" in said
    assert status(reply(narrow, INSIDE, path)) != 403


@pytest.mark.parametrize("path", OPEN)
def test_probes_are_served_to_everybody(narrow, path):
    assert status(reply(narrow, OUTSIDE, path)) == 200


def test_why_something_is_missing_is_told_inside_alone(narrow):
    told = [
        json.loads(reply(narrow, one, "/ready").partition(b"\r\n\r\n")[2])
        for one in (INSIDE, OUTSIDE)
    ]
    assert [sorted(one) for one in told] == [
        ["missing", "reasons", "status"],
        ["missing", "status"],
    ]


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("path", ["/admin/login/", "/agent/query", "/mcp"])
def test_no_header_opens_it(narrow, path, claim):
    bearers = ("Authorization: Bearer " + ("m" * 20 if path == "/mcp" else TOKEN),)
    assert status(reply(narrow, OUTSIDE, path, claim, *bearers, method="POST")) == 403


def test_not_even_where_daphne_is_told_to_believe_them(model_server):
    class Believing(LiveServer):
        def _command(self) -> list[str]:
            return [*super()._command()[:-1], "--proxy-headers", "frostproject.asgi:application"]

    env = {"ADMIN_NETWORKS": f"{INSIDE}/32", "UPSTREAM_ENDPOINT": model_server.url}
    with Believing(env, "daphne") as server:
        assert status(reply(server, OUTSIDE, "/admin/login/", f"X-Forwarded-For: {INSIDE}")) == 403
        assert status(reply(server, INSIDE, "/admin/login/")) == 200
        assert "--proxy-headers is ignored" in server.log


def test_clients_of_onebot_are_let_in_from_elsewhere(narrow):
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
    )
    with connected(narrow, OUTSIDE) as connection:
        connection.sendall(
            head("GET", "/ws/frostagent", *upgrade, f"Authorization: Bearer {TOKEN}")
        )
        assert status(connection.recv(65536)) == 101


def test_other_spellings_of_a_path_open_nothing(narrow):
    for path in (
        "/%61dmin/login/",
        "/admin/../admin/login/",
        "/health/../admin/login/",
        "/./admin/login/",
        "/admin/login/?next=/health",
    ):
        assert status(reply(narrow, OUTSIDE, path)) in (403, 404), path
        assert "csrfmiddlewaretoken" not in reply(narrow, OUTSIDE, path).decode()
    assert status(
        ask(
            narrow,
            b"GET http://127.0.0.1/admin/login/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            OUTSIDE,
        )
    ) in (403, 404)


def test_a_closed_page_gives_nothing_away_and_is_one_line_in_the_log(narrow):
    before = len(narrow.log)
    for _ in range(20):
        said = reply(narrow, OUTSIDE, "/admin/login/<script>")
    assert b"<script" not in said
    assert b"set-cookie" not in said.lower()
    line = f"at {OUTSIDE}: not in ADMIN_NETWORKS"
    assert line in narrow.log
    assert narrow.log[before:].count(line) <= 2


def test_an_address_of_ipv6_that_is_ipv4_counts_as_that(start_server):
    class DualStack(LiveServer):
        def _command(self) -> list[str]:
            return [sys.executable, "manage.py", "runserver", f"[::]:{self.port}", "--noreload"]

    with DualStack({"ADMIN_NETWORKS": "127.0.0.1"}) as server:
        assert status(reply(server, INSIDE, "/admin/login/")) == 200
        assert status(reply(server, OUTSIDE, "/admin/login/")) == 403


# --- What browsers are told ---------------------------------------------------------

HTTPS = "https://bot.example.org"


@pytest.fixture(scope="module")
def behind_https(model_server):
    env = {
        "CSRF_TRUSTED_ORIGINS": f"{HTTPS}, https://192.168.1.5:8443",
        "DJANGO_ALLOWED_HOSTS": "bot.example.org, 127.0.0.1",
    }
    with LiveServer(
        {**env, "LANGUAGE_CODE": "en", "UPSTREAM_ENDPOINT": model_server.url}
    ) as server:
        yield server


def browser(host: str = "127.0.0.1") -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.headers.update({"Host": host, "Accept-Language": "en"})
    return session


def sign_in(server: LiveServer, session: requests.Session, **headers: str) -> requests.Response:
    url = f"{server.url}/admin/login/"
    shown = session.get(url, timeout=PATIENCE)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', shown.text)
    assert token
    form = {
        "username": ADMIN,
        "password": ADMIN_PASSWORD,
        "csrfmiddlewaretoken": token[1],
        "next": "/admin/",
    }
    if "Cookie" in headers:  # what a browser at https keeps, which this session, at http, does not
        headers["Cookie"] = headers["Cookie"].format(
            token=shown.headers["Set-Cookie"].partition(";")[0]
        )
    return session.post(url, form, headers=headers, allow_redirects=False, timeout=PATIENCE)


def test_behind_https_cookies_are_for_https_and_so_is_the_site(behind_https):
    answer = sign_in(behind_https, browser("bot.example.org"), Cookie="{token}", Origin=HTTPS)
    assert answer.status_code == 302
    cookies = answer.raw.headers.getlist("Set-Cookie")
    assert {cookie.partition("=")[0] for cookie in cookies} >= {"sessionid", "csrftoken"}
    for cookie in cookies:
        assert re.search(r"; secure\b", cookie, re.IGNORECASE)
    session = next(cookie for cookie in cookies if cookie.startswith("sessionid"))
    assert "Max-Age=43200" in session
    assert "HttpOnly" in session
    assert re.fullmatch(r"max-age=\d+", answer.headers["Strict-Transport-Security"])


def test_who_comes_over_plain_http_is_told_why_nobody_can_sign_in_there(behind_https):
    session = browser()
    shown = session.get(f"{behind_https.url}/admin/login/", timeout=PATIENCE).text
    assert f"{HTTPS}/admin/" in shown
    assert "over plain http" in shown
    refused = sign_in(behind_https, session)
    assert refused.status_code == 403
    assert "Your browser kept no cookie" in refused.text
    assert f"{HTTPS}/admin/" in refused.text
    assert (
        "over plain http"
        not in browser("bot.example.org")
        .get(f"{behind_https.url}/admin/login/", timeout=PATIENCE)
        .text
    )


def test_a_form_from_elsewhere_is_refused_as_ever(behind_https):
    answer = sign_in(
        behind_https, browser("bot.example.org"), Cookie="{token}", Origin="https://evil.example"
    )
    assert answer.status_code == 403
    assert "Your browser kept no cookie" not in answer.text


@pytest.mark.parametrize(
    "origins", ["", "http://192.168.1.5:1234", f"{HTTPS}, http://192.168.1.5:1234"]
)
def test_where_http_is_used_too_cookies_work_there(start_server, origins):
    server = start_server(CSRF_TRUSTED_ORIGINS=origins)
    answer = sign_in(server, browser())
    assert answer.status_code == 302
    assert "ecure" not in answer.headers["Set-Cookie"]
    assert "Strict-Transport-Security" not in answer.headers


def test_pages_that_refuse_somebody_have_it_too(narrow):
    form = ("Content-Type: application/x-www-form-urlencoded", "Content-Length: 70000")
    too_large = ask(
        narrow, head("POST", "/admin/login/", "Connection: close", *form) + b"x" * 70_000
    )
    assert status(too_large) == 413
    for said in (too_large, reply(narrow, OUTSIDE, "/admin/")):
        assert b"content-security-policy: default-src 'self'; " in said.lower()
        assert b"x-frame-options: deny" in said.lower()


@pytest.mark.parametrize(
    "path", ["/admin/login/", "/admin/", "/static/admin/css/base.css", "/nowhere", "/"]
)
def test_every_answer_to_a_browser_has_the_policy(live, path):
    headers = browser().get(live.url + path, allow_redirects=False, timeout=PATIENCE).headers
    for rule in (
        "default-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ):
        assert rule in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_a_refused_request_of_a_colleague_is_one_line_of_the_log(narrow):
    with requests.Session() as browser:
        browser.trust_env = False
        page = browser.get(f"{narrow.url}/admin/login/", timeout=PATIENCE).text
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
        form = {"username": ADMIN, "password": ADMIN_PASSWORD, "csrfmiddlewaretoken": token}
        browser.post(f"{narrow.url}/admin/login/?next=/admin/", form, timeout=PATIENCE)
        for path in ("/admin/r/8/8/", "/admin/agent/run/0/again/"):
            assert browser.get(narrow.url + path, timeout=PATIENCE).status_code == 404
        unsaid = browser.post(f"{narrow.url}/admin/playground/token/", {}, timeout=PATIENCE)
        assert unsaid.status_code == 403
    assert "Traceback" not in narrow.log
    assert "Forbidden" in narrow.log
