"""A long run: its later steps are fetched when they are opened."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenWindow
from tests.cast import fresh_id
from tests.security.people import run

pytestmark = pytest.mark.slow
STEPS = """
import json, sys, django
django.setup()
from django.utils import timezone
from agent.models import ChatSession, Run, Step
now = timezone.now()
chat = ChatSession.objects.create(
    account="10001", kind="group", peer_id=json.load(sys.stdin), last_message_at=now
)
one = Run.objects.create(session=chat, state="finished", started_at=now, finished_at=now)
for number in range(1, 14):
    Step.objects.create(
        run=one, number=number, created_at=now,
        response={"role": "assistant", "content": f"words of step {number}"},
    )
"""


def test_a_folded_step_is_fetched_when_it_is_opened(live, open_window: OpenWindow):
    run(live, STEPS, str(group := fresh_id()))
    found = "SELECT r.id FROM agent_run r JOIN agent_chatsession s ON s.id = r.session_id"
    (row,) = live.rows(f"{found} WHERE s.peer_id = ?", str(group))
    page = open_window(language="en").page
    page.goto(f"/admin/agent/run/{row['id']}/change/")
    expect(page.get_by_text("words of step 10")).to_be_visible()
    expect(page.get_by_text("words of step 12")).to_have_count(0)
    page.click("#step-12 summary")
    expect(page.get_by_text("words of step 12")).to_be_visible()
    expect(page.locator("#step-13.folded")).to_be_visible()
