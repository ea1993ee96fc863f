"""Erasing a playground: everything of it goes, and nothing of other chats."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent.domain.types import playground_account
from agent.models import (
    ChatEvent,
    ChatSession,
    Description,
    KeptFile,
    Message,
    MessageMedia,
    Note,
    OperatorAct,
    Run,
    SpendSum,
    Tally,
    ToolCall,
)
from agent.runtime import wiring
from onebot.models import Bot, ClientEvent
from onebot.playground.pages import erase_playground
from tests.admin.record import answered, call_of, chat, said, step_of

OWN, OTHER = playground_account(3), playground_account(4)
pytestmark = pytest.mark.django_db


def fill(account: str) -> ChatSession:
    """A chat of ``account`` with one of everything."""
    session, now = chat("1001", kind="private", account=account), timezone.now()
    answer = answered(said(session, "words"))
    assert answer.run
    call_of(step_of(answer.run))
    OperatorAct.objects.create(session=session, kind="reset", at=now)
    ChatEvent.objects.create(session=session, key="1", kind="poke", user_id="1001", at=now)
    Note.objects.create(account=account, visibility="chat", chat="private:1001", text="likes tea")
    Tally.objects.create(subject=f"onebot:{account}/1001")
    ClientEvent.objects.create(self_id=account, created_at=now, raw={})
    Bot.objects.create(self_id=account, owners="1001")
    return session


def attach(session: ChatSession, kept: KeptFile, description: Description | None = None) -> None:
    message = session.messages.first()
    assert message
    MessageMedia.objects.create(
        message=message,
        kind="image",
        kept=kept,
        description=description,
        created_at=timezone.now(),
    )


def count(account: str) -> dict[str, int]:
    runs = Run.objects.filter(session__account=account)
    return {
        "sessions": ChatSession.objects.filter(account=account).count(),
        "messages": Message.objects.filter(session__account=account).count(),
        "runs": runs.count(),
        "calls": ToolCall.objects.filter(run__in=runs).count(),
        "acts": OperatorAct.objects.filter(session__account=account).count(),
        "lines": ChatEvent.objects.filter(session__account=account).count(),
        "notes": Note.objects.filter(account=account).count(),
        "tallies": Tally.objects.filter(subject__startswith=f"onebot:{account}").count(),
        "events": ClientEvent.objects.filter(self_id=account).count(),
        "bots": Bot.objects.filter(self_id=account).count(),
    }


def test_everything_of_a_playground_goes_and_others_stay():
    for account in (OWN, OTHER, "10001"):
        fill(account)
    before = {account: count(account) for account in (OTHER, "10001")}
    assert erase_playground(OWN) == 2
    assert set(count(OWN).values()) == {0}
    assert {account: count(account) for account in (OTHER, "10001")} == before
    assert ToolCall.objects.count() == 2


def test_bot_of_a_connected_playground_keeps_its_owners():
    fill(OWN)
    Bot.objects.update(online=True)
    erase_playground(OWN)
    assert Bot.objects.get().owners == "1001"


def test_money_that_was_spent_stays_on_record():
    fill(OWN)
    SpendSum.objects.create(day="2026-01-01", kind="account", subject=f"onebot:{OWN}", calls=1)
    erase_playground(OWN)
    assert SpendSum.objects.count() == 1


def test_copies_go_unless_another_chat_has_the_same(settings, tmp_path: Path):
    settings.RECEIVED_DIR = tmp_path
    files, now = wiring.build_file_store(), timezone.now()
    own, shared = files.put(b"only here"), files.put(b"in both chats")
    rows = [
        KeptFile.objects.create(sha256=file.sha256, created_at=now, last_used_at=now)
        for file in (own, shared)
    ]
    read = Description.objects.create(content=own.sha256, text="a cat", created_at=now)
    here, there = fill(OWN), fill("10001")
    attach(here, rows[0], read)
    attach(here, rows[1])
    attach(there, rows[1])
    erase_playground(OWN)
    assert list(KeptFile.objects.values_list("sha256", flat=True)) == [shared.sha256]
    assert not Description.objects.exists()
    assert not files.path(own.sha256).exists()
    assert files.path(shared.sha256).exists()


@pytest.mark.parametrize("account", ["10001", "", "9000000000000000"])
def test_account_of_qq_is_never_erased(account):
    User.objects.create_user("somebody")
    with pytest.raises(ValueError, match="no playground"):
        erase_playground(account)
