"""Alerts on their way out, to real servers: ordinary ones and hostile ones."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.alerts import AlertMessage, AlertState, FoundAlert
from agent.runtime import alert_posts
from agent.runtime.alert_posts import post_message
from tests import file_server as files
from tests.environment import PATIENCE

ALERT = FoundAlert("disk", "", "Only 3 MiB are free.", "Make room.", True, "10001")
MESSAGE = AlertMessage(AlertState.FIRING, ALERT, timezone.now())


@pytest.fixture(autouse=True)
def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.FETCH_ALLOW, settings.LANGUAGE_CODE = ["alerts:127.0.0.1"], "en"
    monkeypatch.setattr(alert_posts, "POST_SECONDS", 4 * PATIENCE)


async def test_a_webhook_is_posted_what_holds_and_what_to_do(file_server: Any):
    file_server.serve("/hook", files.sends(b"ok"))
    assert await post_message("webhook", f"{file_server.url}/hook", MESSAGE) == "told"
    (asked,) = file_server.requests
    told = json.loads(asked.body)
    assert asked.method == "POST"
    assert (told["state"], told["kind"], told["account"]) == ("firing", "disk", "10001")
    assert (told["text"], told["advice"]) == ("Only 3 MiB are free.", "Make room.")


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (files.redirects("/elsewhere"), "redirect"),
        (files.redirects("/elsewhere", 307), "redirect"),
        (files.sends(b"no", status=500), "refused"),
        (files.sends_endlessly(), "unknown"),
        (files.hangs_up(), "unknown"),
        (files.says_raw(b"SSH-2.0\r\n\r\n"), "unknown"),
        (files.never_answers(), "slow"),
    ],
)
async def test_a_hostile_webhook_is_not_followed_waited_for_or_read_whole(
    reply: Any, outcome: str, file_server: Any, monkeypatch: pytest.MonkeyPatch
):
    if outcome == "slow":
        monkeypatch.setattr(alert_posts, "POST_SECONDS", 0.3)
    file_server.serve("/hook", reply)
    file_server.serve("/elsewhere", files.sends(b"here"))
    assert await post_message("webhook", f"{file_server.url}/hook", MESSAGE) == outcome
    assert [one.target for one in file_server.requests] == ["/hook"]


async def test_a_private_webhook_takes_a_line_of_fetch_allow(file_server: Any, settings: Any):
    settings.FETCH_ALLOW = ["mcp:127.0.0.1"]
    assert await post_message("webhook", f"{file_server.url}/hook", MESSAGE) == "not_public"
    assert file_server.requests == []


async def test_where_nothing_listens_nothing_has_arrived():
    assert await post_message("webhook", "http://127.0.0.1:9/x", MESSAGE) == "no_connection"


@dataclass
class MailServer:
    """Takes mail by SMTP, as far as apprise speaks it."""

    port: int = 0
    lines: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        is_mail = False
        while line := (await reader.readline()).decode().strip("\r\n") or "-":
            self.lines.append(line)
            word = line[:4].upper()
            if is_mail and line != ".":
                continue
            is_mail = word == "DATA"
            answers = {"EHLO": b"250-here\r\n250 AUTH PLAIN", "DATA": b"354 go", "QUIT": b"221 bye"}
            answers["AUTH"] = b"235 in"
            writer.write(answers.get(word, b"250 ok") + b"\r\n")
            if word == "QUIT" or reader.at_eof():
                break
        writer.close()


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    taken = MailServer()
    server = await asyncio.start_server(taken.serve, "127.0.0.1", 0)
    taken.port = server.sockets[0].getsockname()[1]
    async with server:
        yield taken


def address_of(mail: MailServer, host: str = "127.0.0.1") -> str:
    return f"mailto://me:pw@{host}:{mail.port}/?from=bot@example.org&to=me@example.org"


async def test_mail_is_sent_by_a_process_that_is_gone_then(mail: MailServer):
    assert await post_message("mail", address_of(mail), MESSAGE) == "told"
    text = "\n".join(mail.lines)
    assert "me@example.org" in text
    assert "free" in text


async def test_a_mail_server_on_a_private_address_takes_a_line_of_fetch_allow(
    mail: MailServer, settings: Any
):
    settings.FETCH_ALLOW = []
    assert await post_message("mail", address_of(mail), MESSAGE) == "not_public"
    # named where only the library reads it, which looks up for itself
    hidden = f"{address_of(mail, '203.0.113.7')}&smtp=127.0.0.1"
    assert await post_message("mail", hidden, MESSAGE) == "not_public"
    assert mail.lines == []


async def test_a_service_that_redirects_is_not_followed(file_server: Any):
    file_server.serve("/push", files.redirects("/elsewhere", 307))
    address = f"{file_server.url}/key".replace("http:", "bark:")
    assert await post_message("bark", f"{address}?redirect=yes", MESSAGE) == "failed"
    assert [one.target for one in file_server.requests] == ["/push"]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("bark", "json://127.0.0.1/x"),
        ("mail", "me@example.org"),
        ("discord", "https://127.0.0.1/x"),
        ("telegram", "syslog://"),
    ],
)
async def test_no_other_kind_is_opened_than_the_one_of_the_route(kind: str, address: str):
    assert await post_message(kind, address, MESSAGE) == "unreadable"
