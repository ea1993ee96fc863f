"""Notes in the admin: found, mended, taken away, erased."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.memory.review import NoteMerge, propose_merges
from agent.models import Digest, Note, NoteProposal
from tests.admin.record import chat, logged_in, page
from tests.agent.notes import ANN_AT_HOME, ANN_IN_GROUP, BOB_IN_GROUP, OTHER_GROUP, noted, texts

NOTES = "/admin/agent/note/"


def form(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "text": "喜欢苹果",
        "tags": "[]",
        "visibility": "chat",
        "platform": "onebot",
        "account": "10001",
    }
    usual |= {
        "chat": "group:30001",
        "owner_kind": "person",
        "owner_id": "20001",
        "expires_at_0": "",
        "expires_at_1": "",
    }
    return usual | changes


def shown(browser: Client, query: str) -> list[str]:
    page(browser, f"{NOTES}?{query}")
    return [note.text for note in browser.get(f"{NOTES}?{query}").context["cl"].result_list]


def act(browser: Client, action: str, *pks: int, **more: str) -> Any:
    return browser.post(
        NOTES, {"action": action, "_selected_action": [str(pk) for pk in pks], "index": "0", **more}
    )


@pytest.mark.parametrize("term", ["苹果 喜欢", "20001", "%23{pk}"])
def test_a_note_is_found_by_words_by_person_and_by_number(browser: Client, term: str):
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    noted(BOB_IN_GROUP, "喜欢香蕉")
    assert shown(browser, f"q={term.format(pk=pk)}") == ["喜欢苹果"]


def test_lists_are_filtered_by_source_and_visibility(browser: Client):
    noted(ANN_IN_GROUP, "喜欢苹果", visibility=Note.Visibility.PERSON)
    noted(BOB_IN_GROUP, "喜欢香蕉", source=Note.Source.MODEL)
    assert (
        shown(browser, "source__exact=model")
        == shown(browser, "visibility__exact=chat")
        == ["喜欢香蕉"]
    )
    assert shown(browser, "owner_kind__exact=person&since=today") == ["喜欢香蕉", "喜欢苹果"]


def test_a_list_does_not_load_what_it_does_not_show(
    browser: Client, django_assert_max_num_queries: Any
):
    for number in range(10):
        noted(ANN_IN_GROUP, f"苹果 {number}" + "x" * 500)
    with django_assert_max_num_queries(8):
        assert "x" * 300 not in page(browser, NOTES)


def test_a_note_is_written_for_everyone_by_the_operator(browser: Client):
    assert (
        browser.post(
            f"{NOTES}add/", form(visibility="everyone", account="", chat="", tags='["水果"]')
        ).status_code
        == 302
    )
    assert Note.objects.get().source == "operator"
    assert texts(OTHER_GROUP, "水果") == texts(ANN_AT_HOME, "苹果") == ["喜欢苹果"]


def test_a_note_that_is_opened_to_everyone_becomes_the_operators(browser: Client):
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    assert browser.post(f"{NOTES}{pk}/change/", form(visibility="everyone")).status_code == 302
    assert texts(OTHER_GROUP, "苹果") == ["喜欢苹果"]
    assert Note.objects.get().source == "operator"


def test_an_edited_note_is_found_by_its_new_words(browser: Client):
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    assert browser.post(f"{NOTES}{pk}/change/", form(text="喜欢香蕉")).status_code == 302
    assert (texts(ANN_IN_GROUP, "香蕉"), texts(ANN_IN_GROUP, "苹果")) == (["喜欢香蕉"], [])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"account": ""}, "may be without an account"),
        ({"visibility": "person", "owner_kind": "group"}, "has to say who that is"),
        ({"chat": "30001"}, "Write group:ID or private:ID"),
        ({"tags": '{"a": 1}'}, "Write a list of at most 8"),
        ({"text": "x" * 2_001}, "at most 2000 characters"),
    ],
)
def test_a_note_that_makes_no_sense_is_refused(
    browser: Client, changes: dict[str, str], problem: str
):
    assert problem in browser.post(f"{NOTES}add/", form(**changes)).content.decode()
    assert not Note.objects.exists()


def test_notes_are_exported_as_json_with_everything_that_is_known(browser: Client):
    pk = noted(ANN_IN_GROUP, "喜欢苹果", tags=("水果",)).pk
    answer = act(browser, "export_as_json", pk)
    (row,) = json.loads(answer.content)
    assert (row["text"], row["tags"], row["chat"], row["owner_id"]) == (
        "喜欢苹果",
        ["水果"],
        "group:30001",
        "20001",
    )
    assert "attachment" in answer.headers["Content-Disposition"]


def in_spreadsheet(browser: Client, *said: str) -> dict[str, str]:
    """The cells that the export makes of notes, by what each says."""
    pks = {str(noted(ANN_IN_GROUP, text).pk): text for text in said}
    exported = act(browser, "export_as_csv", *map(int, pks)).content.decode("utf-8-sig")
    rows = csv.DictReader(io.StringIO(exported, newline=""))
    return {pks[row["id"]]: row["text"] for row in rows}


def test_a_spreadsheet_computes_nothing_of_what_people_said(browser: Client):
    signs = "=+-@\uff1d\uff0b\uff0d\uff20\u2212\ufe66"
    spaces = ["", " ", "\t", "\n", "\r\n", "\xa0", "\u3000", "\u2003", "\u200b", "\ufeff", "\x0b"]
    begun = [space + sign for space in (*spaces, "\x01 \n") for sign in signs]
    # Each says something else, because equal notes become one.
    said = [f'{signed}HYPERLINK("evil {number}")' for number, signed in enumerate(begun)]
    assert in_spreadsheet(browser, *said) == {text: f"'{text}" for text in said}


def test_other_words_stay_as_they_are_in_a_spreadsheet(browser: Client):
    said = ["喜欢苹果", "1 + 1 = 2", " 两个空格", "a@b.c", "“＝”是等号", "a\n=1"]
    assert in_spreadsheet(browser, *said) == {text: text for text in said}


def test_a_person_is_erased_after_a_question(browser: Client):
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    noted(ANN_AT_HOME, "喜欢香蕉")
    noted(BOB_IN_GROUP, "Ann 的生日是五月", person="20001")
    noted(BOB_IN_GROUP, "讨厌苹果")
    assert "3 notes" in act(browser, "erase_people", pk).content.decode()
    assert Note.objects.count() == 4
    act(browser, "erase_people", pk, confirmed="yes")
    assert [note.text for note in Note.objects.all()] == ["讨厌苹果"]
    assert texts(ANN_IN_GROUP, "苹果") == ["讨厌苹果"]


def test_what_was_made_of_an_erased_persons_words_goes_with_them(browser: Client):
    pks = tuple(noted(ANN_IN_GROUP, text).pk for text in ("喜欢苹果", "爱吃苹果"))
    propose_merges("m", NoteMerge(pks, "喜欢吃苹果"))
    for kind, peer in (("private", "20001"), ("private", "20002")):
        fields: dict[str, Any] = {
            "kind": "summary",
            "first_run": 1,
            "last_run": 2,
            "created_at": timezone.now(),
        }
        Digest.objects.create(session=chat(peer, kind=kind), text=f"与 {peer} 的谈话", **fields)
    act(browser, "erase_people", pks[0], confirmed="yes")
    assert not NoteProposal.objects.exists()
    assert [digest.text for digest in Digest.objects.order_by("pk")] == ["", "与 20002 的谈话"]


def test_chosen_notes_are_deleted_and_no_longer_found(browser: Client):
    pk = noted(ANN_IN_GROUP, "喜欢苹果").pk
    act(browser, "delete_selected", pk, post="yes")
    assert texts(ANN_IN_GROUP, "苹果") == []


def test_a_viewer_changes_nothing(db: None):
    viewer, pk = logged_in("viewer"), noted(ANN_IN_GROUP, "喜欢苹果").pk
    for address in (f"{NOTES}{pk}/change/", f"{NOTES}{pk}/delete/", f"{NOTES}add/"):
        assert viewer.post(address, form(text="x", post="yes")).status_code == 403
    assert Note.objects.get().text == "喜欢苹果"


def test_tags_are_words_with_commas(browser: Client):
    browser.post(f"{NOTES}add/", form(tags="约定， 吃饭,food、约定"))
    note = Note.objects.get()
    assert note.tags == ["约定", "吃饭", "food"]
    assert 'value="约定, 吃饭, food"' in page(browser, f"{NOTES}{note.pk}/change/")


@pytest.mark.parametrize("tags", ["[1", "[1]", '[["a"]]', "x" * 500])
def test_tags_that_are_none_are_refused(browser: Client, tags: str):
    assert "errornote" in browser.post(f"{NOTES}add/", form(tags=tags)).content.decode()
    assert not Note.objects.exists()


@pytest.mark.parametrize("written", ["群30001", "group 30001", "群聊：30001", " group:30001 "])
def test_a_chat_is_understood_as_people_write_it(browser: Client, written: str):
    browser.post(f"{NOTES}add/", form(chat=written))
    assert Note.objects.get().chat == "group:30001"


def test_known_chats_are_offered_by_their_names(browser: Client):
    chat("30001", title="<b>爬山</b>")
    assert '<option value="group:30001">&lt;b&gt;爬山&lt;/b&gt; (10001)</option>' in page(
        browser, f"{NOTES}add/"
    )
