"""A record to look at: the rows that a server would have written."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

from django.apps import apps
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group, User
from django.db import connection
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from agent.models import ChatSession, Message, Run, Step, ToolCall
from frostproject.models import SignInSession
from frostproject.signin.record import PROVED_AT_KEY, SIGN_IN_KEY, password_mark

groups = import_module("agent.migrations.0002_groups")
PERMISSIONS = [
    import_module(f"agent.migrations.{name}")
    for name in (
        "0008_group_permissions",
        "0010_manners_permissions",
        "0012_cockpit_permissions",
        "0015_installation",
        "0024_alert_routes",
        "0025_reminders",
        "0026_event_rules",
        "0027_requests",
    )
]
ENGLISH = {"accept-language": "en"}
CHINESE = {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}


def chat(
    peer_id: str = "700", *, kind: str = "group", account: str = "10001", title: str = ""
) -> ChatSession:
    return ChatSession.objects.create(
        kind=kind, peer_id=peer_id, account=account, title=title, last_message_at=timezone.now()
    )


def said(
    session: ChatSession, text: str = "hello", *, days_ago: float = 0, **fields: Any
) -> Message:
    """An incoming message."""
    usual: dict[str, Any] = {
        "state": "recorded",
        "reason": "not_addressed",
        "sender_id": "20001",
        "sender_name": "Ann",
    }
    at = timezone.now() - timedelta(days=days_ago)
    return Message.objects.create(
        session=session, direction="in", text=text, created_at=at, **usual | fields
    )


def answered(message: Message, text: str = "hi", **fields: Any) -> Message:
    """The bot's answer to ``message``, with the run behind it."""
    run = run_for(message, final_text=text)
    usual: dict[str, Any] = {"state": "delivered", "run": run}
    return Message.objects.create(
        session=message.session,
        direction="out",
        text=text,
        created_at=timezone.now(),
        **usual | fields,
    )


def run_for(message: Message | None = None, **fields: Any) -> Run:
    usual: dict[str, Any] = {
        "state": "finished",
        "model": "m1",
        "session": message and message.session,
        "message": message,
    }
    return Run.objects.create(started_at=timezone.now(), **usual | fields)


def step_of(run: Run, number: int = 1, **fields: Any) -> Step:
    return Step.objects.create(run=run, number=number, created_at=timezone.now(), **fields)


def call_of(step: Step, tool_name: str = "get_weather", **fields: Any) -> ToolCall:
    usual: dict[str, Any] = {"call_id": "c1", "state": "succeeded"}
    return ToolCall.objects.create(
        run=step.run, step=step, tool_name=tool_name, created_at=timezone.now(), **usual | fields
    )


def tool_form(**changes: Any) -> dict[str, Any]:
    """What a browser sends of a tool's page; None leaves a field out, as a box that is not
    ticked."""
    form: dict[str, Any] = {
        "enabled": "on",
        "timeout_seconds": 60,
        "mock_value": "",
        "description": "",
    }
    form |= {
        "visibility": "visible",
        "scope": "all",
        "allowed": "everyone",
        "allowed_ids": "",
        "parameter_descriptions": "",
    }
    form |= {"calls_per_minute_person": 0, "calls_per_minute_chat": 0, "requires_approval": "own"}
    return {name: value for name, value in (form | changes).items() if value is not None}


def make_groups() -> None:
    """The groups as the migrations make them; a test before may have emptied the database."""
    editor = SimpleNamespace(connection=connection)
    groups.make_groups(apps, editor)
    for migration in PERMISSIONS:
        migration.give(apps, editor)


def logged_in(group: str = "", **user: Any) -> Client:
    """A browser of somebody in ``group``, or of a superuser."""
    account = User.objects.create_user(
        f"user-{group}", is_staff=True, is_superuser=not group, **user
    )
    if group:
        if not Group.objects.filter(name=group).exists():
            make_groups()
        account.groups.add(Group.objects.get(name=group))
    return signed_in(account)


def signed_in(account: User, **options: Any) -> Client:
    """A browser of ``account``, which asks for English, as a sign-in leaves it: the way there takes
    twenty queries, and is the subject of other tests."""
    client, now = Client(headers=ENGLISH, **options), timezone.now()
    session, token = client.session, get_random_string(32)
    session[SESSION_KEY] = str(account.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = account.get_session_auth_hash()
    session.update({SIGN_IN_KEY: token, PROVED_AT_KEY: int(now.timestamp())})
    session.save()
    SignInSession.objects.create(
        user=account,
        token_hash=hashlib.sha256(token.encode()).hexdigest(),
        password_mark=password_mark(account),
        signed_in_at=now,
        last_seen_at=now,
        expires_at=now + timedelta(seconds=session.get_expiry_age()),
    )
    return client


@contextmanager
def undrawn() -> Iterator[None]:
    """Pages are made ready and not drawn, which is most of what they cost: for what their context
    says. How a form shows its faults is tested where one is drawn."""
    with mock.patch.object(SimpleTemplateResponse, "rendered_content", ""):
        yield


def faults(client: Client, address: str, fields: Any) -> dict[str, list[str]]:
    """What a form says against ``fields``, where; nothing once it was saved."""
    with undrawn():
        answer: Any = client.post(address, fields)
    if answer.status_code in (302, 307):
        return {}
    assert answer.status_code == 200, answer
    found = answer.context_data["adminform"].form.errors
    return {name: list(lines) for name, lines in found.items()}


def refused(client: Client, address: str, fields: Any) -> str:
    """All of it, and what is said against further rows of the form."""
    with undrawn():
        answer: Any = client.post(address, fields)
    if answer.status_code == 302:
        return ""
    assert answer.status_code == 200, answer
    return " ".join(map(str, answer.context_data["errors"]))


def page(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response
    return response.content.decode()
