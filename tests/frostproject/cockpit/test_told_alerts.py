"""What of the overview leaves the installation."""

import pytest
from django.utils import timezone

from agent.domain.alerts import AlertKind
from agent.models import Approval, EndpointStatus, Message, ModelEndpoint
from frostproject.cockpit.told_alerts import find_told
from onebot.models import Bot
from tests.admin.record import chat
from tests.frostproject.cockpit import test_alerts as overview
from tools.mcp.models import McpServerStatus
from tools.plugins.models import Plugin

pytestmark = pytest.mark.django_db


def test_every_kind_of_the_overview_can_be_told_outside():
    assert {*AlertKind.values} == {*overview.ACTS, *overview.OUTSIDE, "backup", "version"}


def test_an_outage_is_left_to_those_who_saw_it(monkeypatch: pytest.MonkeyPatch):
    overview.during_outage(monkeypatch)
    assert "outage" not in {one.kind for one in find_told().alerts}


def test_no_words_of_chats_models_and_servers_leave_it():
    here = chat("700", title="S3CRET group")
    for of_chat in (overview.unknown_send, overview.approval):
        of_chat(here)
    for cause in overview.OF_ALL.values():
        cause()
    Message.objects.update(text="S3CRET", detail="S3CRET")
    Approval.objects.update(arguments={"text": "S3CRET"})
    EndpointStatus.objects.update(error="400 S3CRET", error_at=timezone.now(), answered_at=None)
    McpServerStatus.objects.update(error="S3CRET")
    Plugin.objects.update(fault="S3CRET")
    found = find_told().alerts
    assert len({one.kind for one in found}) > 8
    assert "S3CRET" not in "".join(one.text + one.advice + one.about for one in found)


def test_several_that_are_about_the_same_are_one():
    overview.unknown_send(chat("700"))  # two messages
    told = [one.text for one in find_told().alerts if one.kind == "unknown_sends"]
    assert len(told) == 1


def test_accounts_that_are_signed_out_tell_nobody_and_are_told_of():
    Bot.objects.create(self_id="10001", online=True, account_online=False, owners="7")
    Bot.objects.create(self_id="10002", online=True, owners="8")
    look = find_told()
    assert (look.speaking, look.owners["10001"]) == (("10002",), {"7"})
    assert [(one.kind, one.account) for one in look.alerts if one.account] == [
        ("account_offline", "10001")
    ]


def test_it_is_the_same_alert_however_its_words_change():
    ModelEndpoint.objects.create(name="m", base_url="https://a.example/v1", model="m")
    Bot.objects.create(self_id="10001", disconnected_at=timezone.now())
    (before,) = find_told().alerts
    Bot.objects.update(nickname="Frost", disconnected_at=None)
    (after,) = find_told().alerts
    assert before.key == after.key
    assert before.text != after.text
