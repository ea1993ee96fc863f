"""The picture of a persona: put on its page, seen there by who may see it, and gone with it."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from agent.models import Persona, PersonaPicture
from agent.pages.persona_file import load_picture
from tests.admin.record import logged_in, page
from tests.admin.test_personas import PERSONAS, save
from tests.frostproject.imports.samples import card_png
from tests.pictures import BLUE, noise, opened, picture, saved
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
PNG = picture()
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><script>1</script></svg>'


@pytest.fixture
def row(db: None) -> Persona:
    return Persona.objects.create(name="sage")


def put(browser: Client, row: Persona | None, content: bytes, **fields: Any) -> str:
    """What the page says against the picture; "" when it is kept."""
    return save(browser, row, upload=SimpleUploadedFile("a.png", content), **fields)


def test_picture_is_shown_replaced_and_removed_with_a_history(browser: Client, row: Persona):
    address = f"{PERSONAS}{row.pk}/picture/"
    assert browser.get(address).status_code == 404
    for colour in (None, BLUE):
        assert put(browser, row, picture("JPEG", colour) if colour else PNG) == ""
        assert address in page(browser, f"{PERSONAS}{row.pk}/change/")
        shown = browser.get(address)
        assert (shown["Content-Type"], shown.content) == ("image/png", load_picture(row))
        assert shown["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert shown["X-Content-Type-Options"] == "nosniff"
    assert opened(load_picture(row)).format == "PNG"
    assert save(browser, row, prompt="new") == ""
    assert load_picture(row)
    assert save(browser, row, prompt="new", remove="on") == ""
    assert browser.get(address).status_code == 404
    assert save(browser, row, prompt="new", remove="on") == ""
    told = ToolConfigChange.objects.filter(words__contains="picture", author__isnull=False)
    assert [one.kind for one in told] == ["done", "changed", "changed", "changed"]
    history = page(browser, f"{PERSONAS}{row.pk}/change/").partition('id="changes"')[2]
    assert history.count("Changed Picture") == 3


def test_picture_of_a_new_persona_is_kept(browser: Client):
    assert put(browser, None, PNG) == ""
    assert load_picture(Persona.objects.get(name="sage"))


def test_picture_is_small_and_holds_nothing_but_itself(browser: Client, row: Persona):
    exif = Image.Exif()
    exif[0x010E] = "where I live"
    profile = noise((400, 400)).tobytes()  # as large as a profile may be, and no text
    put(browser, row, saved(noise((1200, 900)), "PNG", exif=exif, icc_profile=profile))
    kept = load_picture(row)
    assert max(opened(kept).size) <= 512
    assert len(kept) <= 2**18
    assert set(opened(kept).info) == set()
    put(browser, row, kept)
    assert load_picture(row) == kept


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (card_png(width=60_000, height=60_000), "too many pixels"),
        (card_png(width=2**31 - 1, height=2**31 - 1), "the picture"),
        (saved(noise((200, 200)))[:-3000], "cannot be decoded"),
        (SVG, "cannot be decoded"),
        (b"<html>", "cannot be decoded"),
        (bytes((16 << 20) + 1), "larger than 16 MiB"),
    ],
    ids=["bomb", "4 GiB", "cut", "SVG", "HTML", "large"],
)
def test_what_is_no_picture_is_refused_in_words(browser: Client, row: Persona, content, words):
    assert words in put(browser, row, content)
    assert not PersonaPicture.objects.exists()


def test_picture_is_for_those_who_may_see_or_change_the_persona(browser: Client, row: Persona):
    put(browser, row, PNG)
    kept, address = load_picture(row), f"{PERSONAS}{row.pk}/"
    viewer = logged_in("viewer")
    assert viewer.get(f"{address}picture/").content == kept
    assert 'name="upload"' not in page(viewer, f"{address}change/")
    sent = {"name": "sage", "upload": SimpleUploadedFile("a.png", picture("PNG", BLUE))}
    assert viewer.post(f"{address}change/", sent).status_code == 403
    nobody = logged_in("chat_owner")
    for where in ("picture/", "export/", "change/"):
        assert nobody.get(f"{address}{where}").status_code == 403
    assert nobody.post(f"{address}change/", sent | {"remove": "on"}).status_code == 403
    assert Client().get(f"{address}picture/").status_code == 302
    assert load_picture(row) == kept


def test_picture_goes_with_its_persona(browser: Client, row: Persona):
    put(browser, row, PNG)
    browser.post(f"{PERSONAS}{row.pk}/delete/", {"post": "yes"})
    assert not PersonaPicture.objects.exists()


def test_form_with_a_fault_still_takes_a_picture(browser: Client, row: Persona):
    answer = browser.post(f"{PERSONAS}{row.pk}/change/", {"name": ""})
    field = answer.content.decode().partition('name="upload"')[2].partition(">")[0]
    assert "disabled" not in field
