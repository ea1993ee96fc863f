"""A chat as a file: whole, in order, harmless in a spreadsheet, and for those who may."""

import csv
import io
import json
from datetime import datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.http.response import StreamingHttpResponse
from django.test import Client
from django.utils import timezone

from agent.admin.chats import sessions
from agent.models import ChatGrant, ChatSession, OperatorAct, Reminder
from tests.admin.record import answered, chat, logged_in, said


async def read(answer: StreamingHttpResponse) -> str:
    return "".join([part.decode() async for part in answer])


def exported(client: Client, session: ChatSession, form: str) -> StreamingHttpResponse:
    answer = client.post(f"/admin/agent/chatsession/{session.pk}/export/{form}/")
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    assert isinstance(answer, StreamingHttpResponse)
    return answer


@pytest.fixture
def session(transactional_db: None) -> ChatSession:
    session = chat("900", title="Garden")
    answered(said(session, "=1+1", sender_name="@SUM(A1)"), "第一行\n# 第二行")
    return session


@pytest.fixture
def owner(transactional_db: None) -> Client:
    return logged_in()


async def test_jsonl_has_one_object_a_message_in_order(owner, session, monkeypatch):
    monkeypatch.setattr(sessions, "BATCH", 1)
    text = await read(await sync_to_async(exported)(owner, session, "jsonl"))
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["text"] for row in rows] == ["=1+1", "第一行\n# 第二行"]
    assert (await OperatorAct.objects.aget()).kind == "export"


async def test_what_is_still_to_be_said_stands_at_the_end(owner, session):
    due = timezone.now() + timedelta(days=1)
    rows = ("tea", "waiting", "FREQ=DAILY"), ("rest", "paused", ""), ("gone", "done", "")
    for text, state, repeat in rows:
        fields = {"text": text, "state": state, "repeat": repeat, "set_by": "20001"}
        await Reminder.objects.acreate(session=session, due_at=due, **fields)
    lines = (await read(await sync_to_async(exported)(owner, session, "jsonl"))).splitlines()
    told = [json.loads(line) for line in lines[2:]]
    names = ("direction", "text", "state", "reason", "sender_id")
    assert [tuple(row[name] for name in names) for row in told] == [
        ("reminder", *row, "20001") for row in rows[:2]
    ]
    assert datetime.fromisoformat(told[0]["at"]) == due
    for form in ("csv", "markdown"):
        text = await read(await sync_to_async(exported)(owner, session, form))
        assert ("tea" in text, "gone" in text) == (True, False)


async def test_a_spreadsheet_computes_nothing_of_it(owner, session):
    text = await read(await sync_to_async(exported)(owner, session, "csv"))
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert (rows[0]["text"], rows[0]["sender_name"]) == ("'=1+1", "'@SUM(A1)")


async def test_markdown_shows_words_as_words(owner, session):
    text = await read(await sync_to_async(exported)(owner, session, "markdown"))
    assert "\n>     # 第二行" in text
    assert text.startswith("# Garden")


def test_it_is_for_those_who_may_in_chats_within_reach(transactional_db, session):
    address = f"/admin/agent/chatsession/{session.pk}/export/csv/"
    assert logged_in("viewer").post(address).status_code == 403
    owner = logged_in("chat_owner")
    assert owner.post(address).status_code == 404
    ChatGrant.objects.create(
        user_id=owner.session["_auth_user_id"], account="10001", chat="group:900"
    )
    assert owner.post(address).status_code == 200
    assert owner.get(address).status_code == 405
    assert owner.post(address.replace("csv", "exe")).status_code == 404
