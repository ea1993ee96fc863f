"""Words that turn the direction of reading, where they are edited. That no page shows them as they
are is seen by the walk of tests/admin/test_language_of_pages.py."""

import re

import pytest

from agent.models import Note
from tests.security.two_chats import fill

TURNED = "a\u202eEVIL\u2066\u200f\u061c"


@pytest.mark.django_db
def test_what_is_edited_comes_back_as_it_was(admin_client):
    fill("10001", "30001", TURNED, "20001")
    note = Note.objects.latest("pk")
    assert TURNED in note.text
    page = admin_client.get(f"/admin/agent/note/{note.pk}/change/").content.decode()
    (field,) = re.findall(r'<textarea name="text".*?</textarea>', page, re.DOTALL)
    assert TURNED in field
