"""The page of the time zone, the foot of every page, and what it changes on them."""

from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.http import StreamingHttpResponse
from django.test import Client
from django.utils import timezone

from agent.models import Installation, Message
from tests.admin.record import CHINESE, chat, logged_in, page, said
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
PAGE = "/admin/agent/installation/"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _machine(settings):
    settings.MACHINE_TIME_ZONE = "UTC"


def choose(browser: Client, zone: str) -> str:
    return browser.post(PAGE, {"time_zone": zone}, follow=True).content.decode()


def test_the_page_suggests_the_machines_zone_and_lists_all(browser):
    text = page(browser, PAGE)
    assert '<datalist id="id_time_zone_known"><option value="UTC">' in text
    assert '<option value="Asia/Shanghai">' in text
    assert PAGE in page(browser, "/admin/")


def test_a_chosen_zone_is_at_the_foot_of_every_page_and_can_be_taken_back(browser):
    assert "nobody has chosen" in page(browser, "/admin/")
    choose(browser, "Asia/Shanghai")
    choose(browser, "Asia/Tokyo")
    for address in ("/admin/", PAGE, "/admin/agent/run/", "/admin/start/"):
        text = page(browser, address).partition('id="footer"')[2]
        assert "Asia/Tokyo" in text
        assert "nobody has chosen" not in text
    change = ToolConfigChange.objects.latest("pk")
    assert change.after == {"time_zone": "Asia/Tokyo"}
    browser.post(f"{PAGE}1/revert/{change.pk}/")
    assert Installation.objects.get().time_zone == "Asia/Shanghai"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "CST-8", "../etc/passwd", "localtime", "<b>"])
def test_what_is_no_zone_is_refused(browser, zone):
    assert "is no time zone" in choose(browser, zone)
    assert Installation.objects.get().time_zone == ""


def test_times_on_pages_are_those_of_the_zone(browser):
    message = said(chat(), "hi")
    Message.objects.filter(pk=message.pk).update(created_at=NOON)
    choose(browser, "Asia/Shanghai")
    assert "8 p.m." in page(browser, f"/admin/agent/message/{message.pk}/change/")


async def test_times_in_files_are_those_of_the_zone(transactional_db):
    @sync_to_async
    def ask() -> StreamingHttpResponse:
        browser, message = logged_in(), said(chat(), "hi")
        Message.objects.filter(pk=message.pk).update(created_at=NOON)
        choose(browser, "Asia/Shanghai")
        address = f"/admin/agent/chatsession/{message.session_id}/export/markdown/"
        return browser.post(address)  # type: ignore[return-value]

    written = "".join([part.decode() async for part in await ask()])
    assert "2026-01-31 20:00:00" in written


def test_who_may_not_change_it_reads_its_name_alone(browser):
    choose(browser, "Asia/Shanghai")
    viewer = logged_in("viewer")
    assert 'name="time_zone"' not in page(viewer, PAGE)
    assert viewer.post(PAGE, {"time_zone": "UTC"}).status_code == 403
    user = User.objects.create_user("plain", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_run"))
    plain = Client(headers=CHINESE)
    plain.force_login(user)
    assert plain.get(PAGE).status_code == 403
    foot = page(plain, "/admin/").partition('id="footer"')[2]
    assert "时区: <span" in foot.replace("：", ": ")
    assert PAGE not in foot


def test_the_zone_of_a_page_counts_for_that_page_alone(browser):
    before = str(timezone.get_current_timezone())
    choose(browser, "Pacific/Kiritimati")
    page(browser, "/admin/")
    assert str(timezone.get_current_timezone()) == before
