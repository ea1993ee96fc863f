"""A chat as a file: whole, in order, harmless in a spreadsheet, and for those who may."""

import csv
import io
import json

import pytest
from asgiref.sync import sync_to_async
from django.http.response import StreamingHttpResponse
from django.test import Client

from agent.admin.chats import sessions
from agent.models import ChatGrant, ChatSession, OperatorAct
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
