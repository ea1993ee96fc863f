"""Pictures in the admin: small in the chat, with what was read in them, and gone for good when they
are deleted."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agent.media.file_store import StoredFile
from agent.models import Description, KeptFile, Message, MessageMedia
from agent.runtime import wiring
from tests.admin.record import chat, logged_in, page, said
from tests.pictures import colour_of, opened, picture


@pytest.fixture
def kept() -> StoredFile:
    """A copy with its thumbnail."""
    files = wiring.build_file_store()
    kept = files.put(picture("PNG"))
    files.thumbnail_path(kept.sha256).write_bytes(picture("JPEG"))
    return kept


def row_of(kept: StoredFile) -> KeptFile:
    now = timezone.now()
    fields = {"mime": kept.mime, "size": kept.size, "created_at": now, "last_used_at": now}
    return KeptFile.objects.get_or_create(sha256=kept.sha256, defaults=fields)[0]


def described(text: str = "a <b>red</b> square") -> Description:
    return Description.objects.create(
        content="c", prompt_kind="default", model="vision-9", text=text, created_at=timezone.now()
    )


def medium(message: Message, **fields) -> MessageMedia:
    return MessageMedia.objects.create(
        message=message, created_at=timezone.now(), **{"kind": "image"} | fields
    )


def test_the_chat_shows_a_pictures_thumbnail_with_its_description_and_its_model(
    browser: Client, kept: StoredFile
):
    message, row = said(chat()), row_of(kept)
    medium(message, kept=row, description=described())
    text = page(browser, f"/admin/agent/chatsession/{message.session_id}/change/")
    assert f'src="/admin/agent/keptfile/{row.pk}/thumbnail/"' in text
    assert "a &lt;b&gt;red&lt;/b&gt; square" in text
    assert "vision-9" in text


def test_a_description_of_two_pictures_is_shown_once(browser: Client, kept: StoredFile):
    message, row, description = said(chat()), row_of(kept), described("two squares")
    for position in range(2):
        medium(message, kept=row, description=description, position=position)
    text = page(browser, f"/admin/agent/chatsession/{message.session_id}/change/")
    assert text.count('<p class="description">') == 1
    assert text.count("/thumbnail/") == 2


def test_a_file_is_called_by_its_name(browser: Client, kept: StoredFile):
    message, row = said(chat()), row_of(wiring.build_file_store().put(b"PK\x03\x04"))
    medium(message, kind="file", name="a <b>.docx", kept=row)
    text = page(browser, f"/admin/agent/chatsession/{message.session_id}/change/")
    assert f'<a href="/admin/agent/keptfile/{row.pk}/change/">a &lt;b&gt;.docx</a>' in text


def test_the_chat_says_why_a_picture_could_not_be_had(browser: Client):
    message = said(chat())
    medium(message, reason="the <link> has expired", origin="quoted")
    text = page(browser, f"/admin/agent/chatsession/{message.session_id}/change/")
    assert "the &lt;link&gt; has expired" in text
    assert "in the quoted message" in text
    assert "the &lt;link&gt; has expired" in page(
        browser, f"/admin/agent/message/{message.pk}/change/"
    )


def test_a_thumbnail_is_served_as_a_picture_and_nothing_else(browser: Client, kept: StoredFile):
    response = browser.get(f"/admin/agent/keptfile/{row_of(kept).pk}/thumbnail/")
    assert response["Content-Type"] == "image/jpeg"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]
    assert colour_of(response.content) == "red"


def test_a_thumbnail_is_made_when_it_is_asked_for_first(browser: Client, db: None):
    kept = wiring.build_file_store().put(picture("BMP", size=(900, 600)))
    response = browser.get(f"/admin/agent/keptfile/{row_of(kept).pk}/thumbnail/")
    assert colour_of(response.content) == "red"
    assert max(opened(response.content).size) == 480
    assert wiring.build_file_store().thumbnail_path(kept.sha256).is_file()


def test_what_cannot_be_decoded_has_no_thumbnail(browser: Client, db: None):
    kept = wiring.build_file_store().put(b"GIF89a and nothing more")
    assert browser.get(f"/admin/agent/keptfile/{row_of(kept).pk}/thumbnail/").status_code == 404


def test_what_is_no_picture_is_never_served_as_a_thumbnail(browser: Client, kept: StoredFile):
    wiring.build_file_store().thumbnail_path(kept.sha256).write_bytes(
        b"<html><script>alert(1)</script>"
    )
    assert browser.get(f"/admin/agent/keptfile/{row_of(kept).pk}/thumbnail/").status_code == 404


def test_a_thumbnail_needs_the_permission_to_read(kept: StoredFile, db: None):
    address = f"/admin/agent/keptfile/{row_of(kept).pk}/thumbnail/"
    assert Client().get(address).status_code == 302
    stranger = logged_in("viewer")
    User.objects.get(is_superuser=False).groups.clear()
    assert stranger.get(address).status_code == 403


def test_deleting_a_copy_takes_it_from_the_disk_and_leaves_the_message(
    browser: Client, kept: StoredFile
):
    message, row = said(chat()), row_of(kept)
    medium(message, kept=row)
    browser.post(f"/admin/agent/keptfile/{row.pk}/delete/", {"post": "yes"})
    assert not list((settings.RECEIVED_DIR / kept.sha256[:2]).glob(f"{kept.sha256}*"))
    assert "our copy was deleted" in page(
        browser, f"/admin/agent/chatsession/{message.session_id}/change/"
    )


def test_copies_are_deleted_many_at_a_time(browser: Client, kept: StoredFile):
    row = row_of(kept)
    form = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    browser.post("/admin/agent/keptfile/", form)
    assert not KeptFile.objects.filter(pk=row.pk).exists()
    assert not kept.path.exists()


def test_a_description_is_listed_shown_and_deleted(browser: Client, kept: StoredFile):
    description = described("a red square")
    medium(said(chat()), kept=row_of(kept), description=description)
    assert "a red square" in page(browser, "/admin/agent/description/?q=square")
    shown = page(browser, f"/admin/agent/description/{description.pk}/change/")
    assert "/thumbnail/" in shown
    browser.post(f"/admin/agent/description/{description.pk}/delete/", {"post": "yes"})
    assert not Description.objects.exists()


def test_copies_are_listed_and_found_by_their_type(browser: Client, kept: StoredFile):
    row = row_of(kept)
    assert f"/keptfile/{row.pk}/thumbnail/" in page(browser, "/admin/agent/keptfile/?q=image/png")
    assert f"/keptfile/{row.pk}/thumbnail/" not in page(
        browser, "/admin/agent/keptfile/?q=image/gif"
    )


def test_voice_is_played_where_a_browser_can(browser: Client, db: None):
    row = row_of(wiring.build_file_store().put(b"ID3" + bytes(64)))
    message = said(chat())
    medium(message, kind="record", kept=row)
    source = f"/admin/agent/keptfile/{row.pk}/voice/"
    text = page(browser, f"/admin/agent/chatsession/{message.session_id}/change/")
    assert f'<audio controls preload="none" src="{source}"' in text
    answer = browser.get(source)
    assert (answer["Content-Type"], answer.content[:3]) == ("audio/mpeg", b"ID3")
    assert "sandbox" in answer["Content-Security-Policy"]


@pytest.mark.parametrize("content", [b"#!AMR\n" + bytes(9), b"<script>", picture("PNG")])
def test_what_browsers_do_not_play_is_not_served_as_voice(
    browser: Client, db: None, content: bytes
):
    row = row_of(wiring.build_file_store().put(content))
    assert browser.get(f"/admin/agent/keptfile/{row.pk}/voice/").status_code == 404


def test_voice_of_a_chat_out_of_reach_is_not_served(db: None):
    row = row_of(wiring.build_file_store().put(b"ID3" + bytes(64)))
    medium(said(chat()), kind="record", kept=row)
    owner = logged_in("chat_owner")
    assert owner.get(f"/admin/agent/keptfile/{row.pk}/voice/").status_code == 404
