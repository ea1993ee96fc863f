"""The media folder's page: what can be sent, under which path, and who may put or take away."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agent.admin import media as media_page
from agent.media import media_folder
from agent.media.media_folder import safe_name
from tests.admin.record import ENGLISH, page
from tests.pictures import picture
from tools.models import ToolConfigChange

FOLDER = "/admin/agent/mediafile/"


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    """An empty media folder, with a secret beside it."""
    settings.MEDIA_DIR = tmp_path / "media"
    settings.MEDIA_DIR.mkdir()
    (tmp_path / "classified").write_bytes(b"classified")
    return Path(settings.MEDIA_DIR)


def upload(client: Client, *files: tuple[str, bytes], where: str = "", **fields: str) -> str:
    """The page that answers an upload."""
    given = [SimpleUploadedFile(name, content) for name, content in files]
    response = client.post(
        f"{FOLDER}add/?folder={where}", {"uploads": given, **fields}, follow=True
    )
    assert response.status_code == 200
    return response.content.decode()


def paths(text: str) -> list[str]:
    """The paths that a page offers."""
    return re.findall(r'<code class="path">(.*?)</code>', text)


def with_permissions(*codenames: str) -> Client:
    account = User.objects.create_user("limited", is_staff=True)
    account.user_permissions.set(
        Permission.objects.filter(codename__in=(*codenames, "view_every_chat"))
    )
    client = Client(headers=ENGLISH)
    client.force_login(account)
    return client


# --- What is there ------------------------------------------------------------------


def test_files_are_listed_by_the_path_they_are_sent_by(browser: Client, folder: Path):
    (folder / "cats").mkdir()
    (folder / "cats" / "猫 & <b>.png").write_bytes(b"cat" * 1000)
    (folder / "a.txt").write_bytes(b"a")
    (folder / ".hidden").write_bytes(b"x")
    (folder / "link").symlink_to(folder.parent / "classified")
    top = page(browser, FOLDER)
    assert paths(top) == ["a.txt"]
    assert '<a href="?folder=cats">cats/</a>' in top
    inner = page(browser, f"{FOLDER}?folder=cats")
    assert paths(inner) == ["cats/猫 &amp; &lt;b&gt;.png"]
    assert "2.9\xa0KB" in inner


@pytest.mark.parametrize("where", ["..", "../media", "/etc", "missing", "%00", "x" * 300])
def test_no_other_folder_is_shown(browser: Client, where: str):
    response = browser.get(f"{FOLDER}?folder={where}")
    assert response.status_code == 404 or paths(response.content.decode()) == []
    assert "classified" not in response.content.decode().replace(where, "")


def test_a_long_folder_is_paged_and_capped(
    browser: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(media_page, "FOLDER_PAGE_SIZE", 2)
    monkeypatch.setattr(media_folder, "LISTED", 5)
    for number in range(6):
        (folder / f"{number}").write_bytes(b"x")
    first, last = page(browser, FOLDER), page(browser, f"{FOLDER}?p=99")
    assert (len(paths(first)), len(paths(last))) == (2, 1)
    assert "1 / 3" in first
    assert "entries of this folder are shown" in first


# --- Uploads ------------------------------------------------------------------------


def test_uploads_are_kept_and_noted_in_the_history(browser: Client, folder: Path):
    text = upload(browser, ("a.png", b"first"), ("b.png", b"second"))
    assert paths(text) == ["a.png", "b.png"]
    assert (folder / "b.png").read_bytes() == b"second"
    assert {one.subject for one in ToolConfigChange.objects.all()} == {
        "agent.mediafile:a.png",
        "agent.mediafile:b.png",
    }


def test_a_file_that_was_uploaded_is_named_in_the_list_of_all_changes(browser: Client):
    upload(browser, ("cat.png", b"a cat"))
    assert "cat.png" in page(browser, "/admin/tools/toolconfigchange/")


def test_an_upload_goes_into_the_folder_that_is_shown(browser: Client, folder: Path):
    (folder / "cats").mkdir()
    assert paths(upload(browser, ("a.png", b"a"), where="cats")) == ["cats/a.png"]


def test_a_file_is_replaced_only_when_that_is_asked_for(browser: Client, folder: Path):
    upload(browser, ("a.png", b"old"))
    assert "is there already and was left as it is" in upload(browser, ("a.png", b"new"))
    assert (folder / "a.png").read_bytes() == b"old"
    upload(browser, ("a.png", b"new"), replace="on")
    assert (folder / "a.png").read_bytes() == b"new"


def test_a_file_that_is_too_large_is_refused_and_leaves_nothing(
    browser: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(media_folder, "UPLOAD_BYTES", 4)
    assert "The file is larger than" in upload(browser, ("a.png", b"12345"))
    assert list(folder.iterdir()) == []


def test_a_folder_is_not_replaced_by_a_file(browser: Client, folder: Path):
    (folder / "cats").mkdir()
    upload(browser, ("cats", b"x"), replace="on")
    assert [entry.name for entry in folder.iterdir()] == ["cats"]
    assert (folder / "cats").is_dir()


def test_an_upload_without_a_file_says_so(browser: Client):
    assert "This field is required" in upload(browser)


@pytest.mark.parametrize("where", ["..", "/etc", "missing"])
def test_an_upload_stays_in_the_media_folder(browser: Client, folder: Path, where: str):
    browser.post(f"{FOLDER}add/?folder={where}", {"uploads": SimpleUploadedFile("a.png", b"a")})
    assert not (folder.parent / "a.png").exists()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("小猫 1.png", "小猫_1.png"),
        ("a/../../b\\c:d\0.png", "a_.._.._b_c_d_.png"),
        ("..", "file"),
        ("", "file"),
        (".htaccess", "htaccess"),
        ("a\n<b>'\".sh", "a__b___.sh"),
        ("x" * 300 + ".png", "x" * 180 + ".png"),
        ("猫" * 300 + ".png", "猫" * 60 + ".png"),
    ],
)
def test_a_name_becomes_one_that_every_system_takes(name: str, safe: str):
    assert safe_name(name) == safe


# --- Taking away --------------------------------------------------------------------


def test_a_file_is_deleted_after_a_question(browser: Client, folder: Path):
    (folder / "a.png").write_bytes(b"a")
    assert "Delete “a.png”?" in page(browser, f"{FOLDER}delete/?path=a.png")
    assert (folder / "a.png").exists()
    text = browser.post(f"{FOLDER}delete/?path=a.png", follow=True).content.decode()
    assert "“a.png” was deleted." in text
    assert not (folder / "a.png").exists()
    assert ToolConfigChange.objects.get().kind == "deleted"


@pytest.mark.parametrize(
    "path",
    [
        "../classified",
        "/etc/hostname",
        "..",
        "",
        "cats",
        "missing.png",
        "cats/../../classified",
        "%00",
    ],
)
def test_nothing_else_is_deleted(browser: Client, folder: Path, path: str):
    (folder / "cats").mkdir()
    assert browser.post(f"{FOLDER}delete/?path={path}").status_code == 302
    assert (folder.parent / "classified").exists()
    assert (folder / "cats").exists()
    assert not ToolConfigChange.objects.exists()


# --- Permissions --------------------------------------------------------------------


def test_who_may_only_look_neither_uploads_nor_deletes(db: None, folder: Path):
    (folder / "a.png").write_bytes(b"a")
    client = with_permissions("view_mediafile")
    text = page(client, FOLDER)
    assert paths(text) == ["a.png"]
    assert 'name="uploads"' not in text
    assert "delete/" not in text
    assert (
        client.post(f"{FOLDER}add/", {"uploads": SimpleUploadedFile("b", b"b")}).status_code == 403
    )
    assert client.post(f"{FOLDER}delete/?path=a.png").status_code == 403
    assert [entry.name for entry in folder.iterdir()] == ["a.png"]


def test_without_a_permission_nothing_is_shown(db: None):
    client = with_permissions("view_message")
    assert client.get(FOLDER).status_code == 403
    assert FOLDER not in page(client, "/admin/")


def test_the_folder_is_a_tab_beside_the_notes(browser: Client):
    assert FOLDER in page(browser, "/admin/agent/note/")


# --- Pictures -----------------------------------------------------------------------


def test_pictures_are_shown_small_beside_their_paths(browser: Client, folder: Path):
    (folder / "cat.png").write_bytes(picture())
    (folder / "talk.mp3").write_bytes(b"ID3")
    assert page(browser, FOLDER).count(f'<img src="{FOLDER}picture/?path=cat.png"') == 1
    answer = browser.get(f"{FOLDER}picture/?path=cat.png")
    assert answer.headers["Content-Type"] == "image/png"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["", "../classified", "page.png", "gone.png", "%00"])
def test_nothing_but_a_picture_of_the_folder_is_given_out(browser: Client, folder: Path, path: str):
    (folder / "page.png").write_bytes(b"<script>alert(1)</script>")
    assert browser.get(f"{FOLDER}picture/?path={path}").status_code == 404


def test_pictures_are_for_those_who_see_the_folder(db: None, folder: Path):
    (folder / "cat.png").write_bytes(picture())
    client = with_permissions("view_message")
    assert client.get(f"{FOLDER}picture/?path=cat.png").status_code == 403
