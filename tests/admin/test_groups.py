"""The groups that come with the program: operators edit tools, viewers read, others see nothing."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from agent.models import ChatSession
from tests import zygote
from tests.admin.record import chat, groups, logged_in, make_groups, page, said, tool_form
from tools.models import ToolConfig

AGENT = (
    *(
        "approval",
        "chatsession",
        "description",
        "digest",
        "keptfile",
        "mediafile",
        "message",
        "note",
    ),
    *("noteproposal", "run", "step", "sticker", "toolcall"),
)
OUTSIDE = ("httptool", "mcpserver", "plugin", "secret")
LISTS = (
    *(f"agent/{name}" for name in AGENT),
    *(f"tools/{name}" for name in OUTSIDE),
    "onebot/bot",
    "onebot/clientevent",
    "agent/modelendpoint",
    "agent/manners",
)


@pytest.fixture(autouse=True)
def _groups(db: None) -> None:
    """The groups, also after a test that emptied the database."""
    make_groups()


@pytest.mark.parametrize("group", ["operator", "viewer"])
def test_both_groups_read_every_record(group: str):
    client = logged_in(group)
    for name in (*LISTS, "tools/toolconfig", "tools/toolconfigchange"):
        page(client, f"/admin/{name}/")
    page(client, f"/admin/agent/chatsession/{said(chat()).session_id}/change/")


def save_tool(client: Client) -> int:
    tool, _ = ToolConfig.objects.get_or_create(name="t")
    return client.post(
        f"/admin/tools/toolconfig/{tool.pk}/change/", tool_form(timeout_seconds=9)
    ).status_code


def test_an_operator_edits_tools_and_no_record():
    client, message = logged_in("operator"), said(chat())
    assert save_tool(client) == 302
    assert ToolConfig.objects.get().timeout_seconds == 9
    assert (
        client.post(f"/admin/agent/message/{message.pk}/change/", {"text": "forged"}).status_code
        == 403
    )
    assert client.get("/admin/auth/user/").status_code == 403


def test_a_viewer_edits_nothing():
    client = logged_in("viewer")
    assert save_tool(client) == 403
    assert ToolConfig.objects.get().timeout_seconds == 60
    assert "_save" not in page(client, "/admin/tools/toolconfig/")


def save_state(client: Client, session: ChatSession) -> int:
    return client.post(
        f"/admin/agent/chatsession/{session.pk}/change/", {"state": '{"a": 1}'}
    ).status_code


def test_an_operator_sets_the_state_of_a_chat_and_adds_and_deletes_none():
    client, session = logged_in("operator"), chat()
    assert save_state(client, session) == 302
    assert ChatSession.objects.get().state == {"a": 1}
    assert client.get("/admin/agent/chatsession/add/").status_code == 403
    assert (
        client.post(f"/admin/agent/chatsession/{session.pk}/delete/", {"post": "yes"}).status_code
        == 403
    )


def test_a_viewer_sees_the_state_of_a_chat_without_a_form():
    client, session = logged_in("viewer"), chat()
    ChatSession.objects.update(state={"city": "<b>北京"})
    text = page(client, f"/admin/agent/chatsession/{session.pk}/change/?panel=settings")
    assert "&lt;b&gt;北京" in text
    assert "<b>北京" not in text
    assert "<textarea" not in text
    assert save_state(client, session) == 403
    assert ChatSession.objects.get().state == {"city": "<b>北京"}


def test_without_a_group_there_is_nothing_to_see():
    client = logged_in("viewer")
    Group.objects.get(name="viewer").permissions.clear()
    for name in (*LISTS, "tools/toolconfig", "tools/toolconfigchange"):
        assert client.get(f"/admin/{name}/").status_code == 403
    assert "Waiting for an answer" not in page(client, "/admin/")


def test_making_the_groups_again_changes_nothing_and_taking_them_back_removes_them():
    before = {group.name: group.permissions.count() for group in Group.objects.all()}
    make_groups()
    assert (
        before
        == {group.name: group.permissions.count() for group in Group.objects.all()}
        == {"operator": 103, "viewer": 42, "chat_owner": 18}
    )
    groups.remove_groups(apps, SimpleNamespace(connection=connection))
    assert not Group.objects.exclude(name="chat_owner").exists()


def test_a_fresh_database_has_the_groups(tmp_path: Path):
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    fresh = {"FROST_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "frostproject.settings"}
    zygote.run(command, os.environ | fresh, check=True, timeout=120)
    with closing(sqlite3.connect(tmp_path / "frostagent.sqlite3")) as database:
        rows = database.execute(
            "SELECT g.name, p.codename, p.name FROM auth_group g JOIN auth_group_permissions "
            "l ON l.group_id = g.id"
            " JOIN auth_permission p ON p.id = l.permission_id"
        ).fetchall()
        doubled = database.execute(
            "SELECT 1 FROM auth_permission GROUP BY content_type_id, codename HAVING COUNT(*) > 1"
        ).fetchall()
    assert ("operator", "change_toolconfig", "Can change tool config") in rows
    assert len(rows) == 163
    assert doubled == []
