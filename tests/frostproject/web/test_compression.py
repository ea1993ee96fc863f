"""What is sent compressed, and what is not."""

import contextlib
import gzip

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from frostproject.web.compression import CompressText
from tests.admin.record import logged_in

GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.django_db
def test_a_page_and_its_styles_are_sent_compressed_to_who_takes_that():
    browser = logged_in()
    plain = browser.get("/admin/")
    packed = browser.get("/admin/", headers=GZIP)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.content) < len(plain.content) / 3
    assert gzip.decompress(packed.content).startswith(b"<!DOCTYPE html>")
    with contextlib.closing(browser.get("/static/frostproject/shell.css", headers=GZIP)) as style:
        assert b"#header" in gzip.decompress(b"".join(style))


@pytest.mark.parametrize("kind", ["image/png", "font/woff2", "application/zip", ""])
def test_what_gets_no_shorter_is_sent_as_it_is(kind: str):
    answer = HttpResponse(b"\0" * 1000, content_type=kind)
    request = RequestFactory(headers=GZIP).get("/")
    assert CompressText(lambda _request: answer).process_response(request, answer) is answer
    assert "Content-Encoding" not in answer.headers
