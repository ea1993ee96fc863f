"""The stickers' pages: uploads, words, what is missing, and who may change what."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent.models import Sticker
from tests.admin.record import page
from tests.admin.test_media_files import with_permissions
from tests.pictures import RED, colour_of, picture
from tools.live_rows import LiveKind
from tools.models import ConfigVersion, ToolConfigChange

LIST = "/admin/agent/sticker/"


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    """The folder of the stickers, which is not there yet."""
    settings.MEDIA_DIR = tmp_path / "media"
    settings.MEDIA_DIR.mkdir()
    return Path(settings.MEDIA_DIR) / "stickers"


def upload(client: Client, name: str = "a.png", content: bytes | None = None, **fields: str) -> str:
    """The page that answers an upload."""
    file = SimpleUploadedFile(name, picture() if content is None else content)
    response = client.post(f"{LIST}add/", {"picture": file, "enabled": "on", **fields}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def change(client: Client, sticker: Sticker, **fields: str) -> int:
    return client.post(
        f"{LIST}{sticker.pk}/change/", {"words": sticker.words, "tags": sticker.tags, **fields}
    ).status_code


def act(client: Client, action: str, *stickers: Sticker, **fields: str) -> str:
    chosen = {"action": action, "_selected_action": [str(one.pk) for one in stickers], **fields}
    return client.post(LIST, chosen, follow=True).content.decode()


def test_an_upload_becomes_a_sticker_with_its_words(browser: Client, folder: Path):
    upload(browser, "../小猫 1.jpeg", words="很开心", tags="猫, 笑")
    sticker = Sticker.objects.get()
    assert (sticker.path, sticker.words, sticker.tags, sticker.enabled) == (
        "小猫_1.png",
        "很开心",
        "猫, 笑",
        True,
    )
    assert colour_of((folder / sticker.path).read_bytes()) == "red"
    assert ToolConfigChange.objects.get().kind == "added"
    page(browser, LIST)
    assert Sticker.objects.count() == 1  # the look at the folder knows it


def test_an_upload_without_words_has_those_of_its_name(browser: Client):
    upload(browser, "开心_猫.png")
    assert Sticker.objects.get().words == "开心 猫"


def test_uploads_of_one_name_lie_beside_each_other(browser: Client, folder: Path):
    upload(browser, "a.png")
    upload(browser, "a.png", picture(size=(9, 9)))
    assert sorted(file.name for file in folder.iterdir()) == ["a-2.png", "a.png"]
    assert Sticker.objects.count() == 2


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.png", b"<svg onload=alert(1)>", "This is no picture that can be sent."),
        ("a.html", b"GIF", "This is no picture that can be sent."),
        ("a.png", b"", "The submitted file is empty."),
    ],
)
def test_what_cannot_be_sent_is_refused(
    browser: Client, folder: Path, name: str, content: bytes, problem: str
):
    assert problem in upload(browser, name, content)
    assert not Sticker.objects.exists()
    assert not folder.exists()


def test_a_picture_that_is_too_large_is_refused(
    browser: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent.admin.media.LARGEST", 20)
    assert "The file is larger than" in upload(browser)
    assert not folder.exists()


def test_a_picture_that_is_there_already_is_refused_and_named(browser: Client, folder: Path):
    upload(browser, "a.png", words="开心")
    assert "This picture is there already: 开心" in upload(browser, "b.png")
    assert [file.name for file in folder.iterdir()] == ["a.png"]


def test_a_row_with_a_problem_leaves_no_file(browser: Client, folder: Path):
    upload(browser, words="x" * 501)
    assert not Sticker.objects.exists()
    assert not folder.exists()


def test_files_found_in_the_folder_are_listed_and_shown(browser: Client, folder: Path):
    (folder / "cats").mkdir(parents=True)
    (folder / "cats" / "开心.png").write_bytes(picture(colour=RED))
    text = page(browser, LIST)
    assert "cats 开心" in text
    (source,) = re.findall(r'<img src="([^"]+/picture/)"', text)
    shown = browser.get(source)
    assert (shown["content-type"], colour_of(shown.content)) == ("image/png", "red")
    assert "sandbox" in shown["content-security-policy"]


def test_a_file_that_is_gone_is_said_to_be_missing(browser: Client, folder: Path):
    upload(browser, words="开心")
    (folder / "a.png").unlink()
    text = page(browser, LIST)
    assert "missing on disk" in text
    assert "/picture/" not in text
    assert browser.get(f"{LIST}{Sticker.objects.get().pk}/picture/").status_code == 404
    page(browser, f"{LIST}{Sticker.objects.get().pk}/change/")


def test_words_are_changed_and_every_process_gets_to_know(browser: Client):
    upload(browser)
    before, sticker = ConfigVersion.current(LiveKind.STICKERS), Sticker.objects.get()
    assert change(browser, sticker, words="无语", enabled="") == 302
    sticker.refresh_from_db()
    assert (sticker.words, sticker.enabled, ConfigVersion.current(LiveKind.STICKERS) > before) == (
        "无语",
        False,
        True,
    )


def test_several_are_switched_at_once(browser: Client):
    upload(browser)
    before, sticker = ConfigVersion.current(LiveKind.STICKERS), Sticker.objects.get()
    act(browser, "disable", sticker)
    assert not Sticker.objects.get().enabled
    act(browser, "enable", sticker)
    assert Sticker.objects.get().enabled
    assert ConfigVersion.current(LiveKind.STICKERS) == before + 2


def test_a_deleted_sticker_takes_its_file_along(browser: Client, folder: Path):
    upload(browser, "a.png")
    upload(browser, "b.png", picture(size=(9, 9)))
    first, second = Sticker.objects.order_by("pk")
    question = page(browser, f"{LIST}{first.pk}/delete/")
    assert f"/admin/agent/sticker/{first.pk}/picture/" in question
    assert browser.post(f"{LIST}{first.pk}/delete/", {"post": "yes"}).status_code == 302
    act(browser, "delete_selected", second, post="yes")
    page(browser, LIST)
    assert (Sticker.objects.count(), list(folder.iterdir())) == (0, [])


def test_who_may_only_look_changes_nothing(browser: Client):
    upload(browser, words="开心")
    sticker, client = Sticker.objects.get(), with_permissions("view_sticker")
    assert "开心" in page(client, LIST)
    assert client.get(f"{LIST}{sticker.pk}/picture/").status_code == 200
    assert client.post(f"{LIST}add/", {}).status_code == 403
    assert change(client, sticker, words="x") == 403
    assert client.post(f"{LIST}{sticker.pk}/delete/", {"post": "yes"}).status_code == 403
    assert (Sticker.objects.get().words, Sticker.objects.get().enabled) == ("开心", True)


def test_without_a_permission_no_picture_is_shown(browser: Client):
    upload(browser)
    client = with_permissions("view_message")
    assert client.get(LIST).status_code == 403
    assert client.get(f"{LIST}{Sticker.objects.get().pk}/picture/").status_code == 403


def test_words_and_names_are_shown_as_text(browser: Client):
    upload(browser, words="<script>alert(1)</script>", tags="<b>")
    text = page(browser, LIST) + page(browser, f"{LIST}{Sticker.objects.get().pk}/change/")
    assert "<script>alert" not in text
    assert "&lt;b&gt;" in text


def test_a_search_finds_words_tags_and_files(browser: Client):
    upload(browser, "a.png", words="开心", tags="猫")
    upload(browser, "b.png", picture(size=(9, 9)), words="伤心")
    for term in ("开心", "猫", "a.png"):
        text = page(browser, f"{LIST}?q={term}")
        assert ("开心" in text, "伤心" in text) == (True, False)


def test_the_list_asks_the_same_number_of_questions_however_many_there_are(
    browser: Client, folder: Path
):
    counts = []
    for number in range(2):
        upload(browser, content=picture(size=(9, 9 + number)))
        page(browser, LIST)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page(browser, LIST)
        counts.append(len(asked))
    assert counts[0] == counts[1]
