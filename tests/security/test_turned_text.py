"""Words that turn the direction of reading, in every row that a page of the admin shows."""

import re

import pytest
from django.test import Client

from agent.models import Note
from tests.admin.record import ENGLISH, chat, said
from tests.security.two_chats import every_address, fill

pytestmark = pytest.mark.django_db
TURNED = "a\u202eEVIL\u2066\u200f\u061c"
SIGNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: What is edited on a page, and goes back as it came.
EDITED = re.compile(r"<textarea.*?</textarea>|value=\"[^\"]*\"", re.DOTALL)


@pytest.fixture
def browser(admin_user) -> Client:
    client = Client(headers=ENGLISH)
    client.force_login(admin_user)
    return client


@pytest.mark.slow
def test_no_page_turns_the_direction_of_reading(browser):
    fill("10001", "30001", TURNED, "20001")
    said(chat("30002", title=TURNED), TURNED, state="failed", detail=TURNED, raw={"card": TURNED})
    shown = 0
    for address in every_address():
        answer = browser.get(address)
        if "text/html" in answer.get("Content-Type", "") and not answer.streaming:
            page = answer.content.decode()
            shown += "\\u202eEVIL" in page
            assert not SIGNS.search(EDITED.sub("", page)), address
            assert int(answer.get("Content-Length", len(answer.content))) == len(answer.content)
    assert shown > 10


def test_what_is_edited_comes_back_as_it_was(browser):
    fill("10001", "30001", TURNED, "20001")
    note = Note.objects.latest("pk")
    assert TURNED in note.text
    page = browser.get(f"/admin/agent/note/{note.pk}/change/").content.decode()
    (field,) = re.findall(r'<textarea name="text".*?</textarea>', page, re.DOTALL)
    assert TURNED in field
