"""Proposals for notes and digests in the admin."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.memory.review import NoteMerge, propose_merges
from agent.models import Digest, Note, NoteProposal
from tests.admin.record import chat, logged_in, page
from tests.agent.notes import ANN_IN_GROUP, noted

PROPOSALS = "/admin/agent/noteproposal/"


@pytest.fixture
def proposal(db: None) -> int:
    pks = tuple(noted(ANN_IN_GROUP, text).pk for text in ("喜欢苹果", "爱吃苹果"))
    return propose_merges("m", NoteMerge(pks, "喜欢吃苹果"))


def act(browser: Client, action: str, pk: int) -> Any:
    return browser.post(
        PROPOSALS, {"action": action, "_selected_action": [str(pk)], "index": "0"}, follow=True
    )


def test_a_proposal_shows_the_notes_and_what_they_would_become(browser: Client, proposal: int):
    for address in (PROPOSALS, f"{PROPOSALS}{proposal}/change/"):
        text = page(browser, address)
        assert all(words in text for words in ("喜欢苹果", "爱吃苹果", "喜欢吃苹果"))


def test_accepting_is_done_and_said(browser: Client, proposal: int):
    assert "1 proposal was decided." in act(browser, "accept", proposal).content.decode()
    assert [note.text for note in Note.objects.all()] == ["喜欢吃苹果"]
    assert NoteProposal.objects.get().decided_by == "user-"


def test_rejecting_leaves_the_notes(browser: Client, proposal: int):
    act(browser, "reject", proposal)
    assert Note.objects.count() == 2
    assert NoteProposal.objects.get().state == "rejected"


def test_notes_that_changed_since_are_named(browser: Client, proposal: int):
    Note.objects.filter(text="爱吃苹果").delete()
    assert "have changed since" in act(browser, "accept", proposal).content.decode()


def test_a_viewer_decides_nothing(proposal: int):
    act(logged_in("viewer"), "accept", proposal)
    assert NoteProposal.objects.get().state == "waiting"


def decide(browser: Client, pk: int, decision: str) -> Any:
    return browser.post(f"{PROPOSALS}{pk}/decide/", {"decision": decision}, follow=True)


def test_a_proposal_is_decided_on_its_page_once(browser: Client, proposal: int):
    assert f'action="{PROPOSALS}{proposal}/decide/"' in page(
        browser, f"{PROPOSALS}{proposal}/change/"
    )
    assert "1 proposal was decided." in decide(browser, proposal, "accept").content.decode()
    assert [note.text for note in Note.objects.all()] == ["喜欢吃苹果"]
    again = decide(browser, proposal, "reject").content.decode()
    assert "was left as it is" in again
    assert "/decide/" not in again
    assert NoteProposal.objects.get().state == "applied"


@pytest.mark.parametrize(("decision", "status"), [("", 400), ("delete", 400)])
def test_a_word_that_is_no_decision_changes_nothing(
    browser: Client, proposal: int, decision: str, status: int
):
    assert decide(browser, proposal, decision).status_code == status
    assert browser.get(f"{PROPOSALS}{proposal}/decide/").status_code == 405
    assert decide(browser, proposal + 1, "accept").status_code == 404
    assert NoteProposal.objects.get().state == "waiting"


def test_a_viewer_has_no_buttons_and_may_not_press_them(proposal: int):
    viewer = logged_in("viewer")
    assert "/decide/" not in page(viewer, f"{PROPOSALS}{proposal}/change/")
    assert decide(viewer, proposal, "accept").status_code == 403
    assert NoteProposal.objects.get().state == "waiting"


def test_a_digest_shows_what_was_read_and_cannot_be_changed(browser: Client):
    fields: dict[str, Any] = {"kind": "summary", "first_run": 1, "last_run": 9, "message_count": 18}
    digest = Digest.objects.create(
        session=chat(title="爬山"), text="周末去爬山", created_at=timezone.now(), **fields
    )
    address = f"/admin/agent/digest/{digest.pk}/change/"
    assert "周末去爬山" in page(browser, address)
    assert "爬山" in page(browser, "/admin/agent/digest/?q=周末")
    assert browser.post(address, {"text": "x"}).status_code == 403
