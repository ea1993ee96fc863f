"""The page with the last log lines, and who may see it."""

import logging

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from frostproject.web.logs import RecentLines, RedactingFormatter
from tests.admin.record import logged_in, page


@pytest.fixture(autouse=True)
def _lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecentLines, "lines", type(RecentLines.lines)(maxlen=10))
    handler = RecentLines()
    handler.setFormatter(RedactingFormatter("%(levelname)s %(message)s"))
    for level, text in ((logging.INFO, "calm <b>line"), (logging.ERROR, "bad line")):
        record = logging.LogRecord("a", level, "", 1, text, (), None)
        record.run = 3
        handler.emit(record)


def test_the_newest_lines_are_shown_escaped_with_a_link_to_their_run(browser: Client):
    text = page(browser, "/admin/log/")
    assert text.index("bad line") < text.index("calm &lt;b&gt;line")
    assert "/admin/agent/run/3/change/" in text


def test_lines_are_filtered_by_level_and_words(browser: Client):
    assert "calm" not in page(browser, "/admin/log/?level=ERROR&part=lines")
    assert "bad line" not in page(browser, "/admin/log/?q=CALM&run=3&part=lines")
    assert "bad line" in page(browser, "/admin/log/?level=odd&run=odd")


@pytest.mark.parametrize("group", ["operator", "viewer"])
def test_it_is_for_those_who_were_given_the_permission(db: None, group: str):
    client = logged_in(group)
    assert client.get("/admin/log/").status_code == 403
    assert "/admin/log/" not in page(client, "/admin/")
    user = User.objects.get(pk=client.session["_auth_user_id"])
    user.user_permissions.add(Permission.objects.get(codename="view_log"))
    assert "bad line" in page(client, "/admin/log/")
