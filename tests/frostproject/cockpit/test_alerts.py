"""What the first page says needs somebody: each kind of trouble, and only within reach."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agent.domain.playground import playground_account
from agent.models import (
    ActivitySum,
    Approval,
    Budget,
    ChatGrant,
    ChatSession,
    EndpointStatus,
    Manners,
    ModelEndpoint,
    ServerProcess,
    SpendSum,
)
from agent.record.activity import hour_of
from agent.record.spendings import current_day
from frostproject.cockpit.alerts import Alert, find_viewer
from frostproject.cockpit.chat_alerts import chat_alerts
from frostproject.cockpit.system_alerts import system_alerts
from frostproject.models import FailedSignIns
from onebot.models import Bot
from tests.admin.record import call_of, chat, logged_in, page, run_for, said, step_of
from tools.mcp.models import McpServer, McpServerStatus
from tools.plugins.models import Plugin, PluginStatus

pytestmark = pytest.mark.django_db


def alerts(user: User) -> list[Alert]:
    viewer = find_viewer(user)
    return [*chat_alerts(viewer), *system_alerts(viewer)]


def superuser() -> User:
    return User.objects.create_superuser("root")


def owner_of(session: ChatSession) -> User:
    logged_in("chat_owner")
    user = User.objects.get(username="user-chat_owner")
    ChatGrant.objects.create(user=user, account=session.account, chat=session.key)
    return user


def unknown_send(session: ChatSession) -> None:
    day, hour = hour_of(timezone.now())
    ActivitySum.objects.create(day=day, hour=hour, session=session, unknown=2)


def approval(session: ChatSession) -> None:
    call = call_of(step_of(run_for(said(session))))
    times = {"created_at": timezone.now(), "expires_at": timezone.now() + timedelta(hours=1)}
    Approval.objects.create(call=call, session=session, code="1", state="waiting", **times)


def taken_over(session: ChatSession) -> None:
    ChatSession.objects.filter(pk=session.pk).update(
        taken_over_by="Olga", taken_over_at=timezone.now()
    )


def paused(session: ChatSession) -> None:
    ChatSession.objects.filter(pk=session.pk).update(pause_reason="muted")


def disconnected(session: ChatSession) -> None:
    Bot.objects.create(self_id=session.account, online=False, disconnected_at=timezone.now())


def account_offline(session: ChatSession) -> None:
    Bot.objects.create(self_id=session.account, online=True, account_online=False)


IN_CHATS = (unknown_send, approval, taken_over, paused, disconnected, account_offline)
KINDS = {"unknown_send": "unknown_sends", "approval": "approvals"}


@pytest.mark.parametrize("trouble", IN_CHATS)
def test_trouble_of_a_chat_is_told_to_those_who_may_see_the_chat_alone(
    trouble: Callable[[ChatSession], None],
):
    here, elsewhere = chat("700"), chat("800", account="10009")
    trouble(here)
    kind = KINDS.get(trouble.__name__, trouble.__name__)
    for user, is_told in ((superuser(), True), (owner_of(here), True)):
        assert (kind in [one.kind for one in alerts(user)]) is is_told
    stranger = User.objects.get(username="user-chat_owner")
    ChatGrant.objects.update(account=elsewhere.account, chat=elsewhere.key)
    assert alerts(stranger) == []


def failing_model() -> None:
    row = ModelEndpoint.objects.create(name="m", base_url="https://a.example/v1", model="m")
    EndpointStatus.objects.update_or_create(
        endpoint=row, defaults={"error": "no answer", "error_at": timezone.now()}
    )


def living() -> str:
    facts = {"host": "h", "pid": 1, "last_seen_at": timezone.now()}
    ServerProcess.objects.get_or_create(pk="p1", defaults=facts)
    return "p1"


def dead_server() -> None:
    server = McpServer.objects.create(name="maps", url="https://a.example/mcp")
    McpServerStatus.objects.create(
        server=server, process_id=living(), state="waiting", error="refused", seen_at=timezone.now()
    )


def broken_plugin() -> None:
    plugin = Plugin.objects.create(folder="dice", enabled=True)
    PluginStatus.objects.create(
        plugin=plugin, process_id=living(), state="broken", seen_at=timezone.now()
    )


def spent_budget() -> None:
    Budget.objects.create(name="all", limit=100, unit="tokens")
    SpendSum.objects.create(day=current_day(), kind="total", input_tokens=85)


def failed_sign_ins() -> None:
    FailedSignIns.objects.create(hour=timezone.now(), count=9, last_at=timezone.now())


def silenced() -> None:
    Manners.objects.create(name="hush", silenced=True)


def no_model() -> None:
    """Nothing is set."""


OF_ALL = {
    "model": failing_model,
    "mcp": dead_server,
    "plugin": broken_plugin,
    "budget": spent_budget,
    "sign_ins": failed_sign_ins,
    "silence": silenced,
    "no-model": no_model,
}


@pytest.mark.parametrize("kind", OF_ALL)
def test_trouble_of_the_whole_is_told_to_those_who_may_see_everything(kind: str):
    OF_ALL[kind]()
    (alert,) = [one for one in alerts(superuser()) if one.kind == kind]
    assert alert.text
    assert alert.url.startswith("/admin/")
    assert alerts(owner_of(chat())) == []


def test_trouble_that_is_over_is_not_told_of():
    failing_model()
    dead_server()
    broken_plugin()
    later = timezone.now() + timedelta(seconds=1)
    EndpointStatus.objects.update(answered_at=later)
    McpServerStatus.objects.update(state="connected")
    PluginStatus.objects.update(state="running")
    Bot.objects.create(self_id="10001", online=True, account_online=True)
    assert alerts(superuser()) == []


def test_a_little_disk_space_is_told_of(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("frostproject.cockpit.system_alerts.LEAST_FREE", 2**62)
    assert "disk" in [one.kind for one in alerts(superuser())]


def test_a_playground_that_is_closed_is_no_lost_account():
    Bot.objects.create(self_id=playground_account(1), online=False)
    assert "disconnected" not in [one.kind for one in alerts(superuser())]


def test_names_from_outside_cannot_turn_the_text_around():
    failing_model()
    ModelEndpoint.objects.update(name="a\u202eb")
    assert "\u202e" not in "".join(one.text for one in alerts(superuser()))


def test_an_account_that_is_retired_is_deleted_and_no_longer_told_of(browser: Client):
    away = Bot.objects.create(self_id="10002", online=False)
    here = Bot.objects.create(self_id="10001", online=True)
    assert browser.post(f"/admin/onebot/bot/{here.pk}/delete/", {"post": "yes"}).status_code == 403
    browser.post(f"/admin/onebot/bot/{away.pk}/delete/", {"post": "yes"})
    assert list(Bot.objects.values_list("self_id", flat=True)) == ["10001"]
    assert "10002" not in page(browser, "/admin/overview/state/")


def test_nothing_to_say_is_one_calm_line(browser: Client):
    ModelEndpoint.objects.create(name="m", base_url="https://a.example/v1", model="m")
    text = page(browser, "/admin/overview/state/")
    assert "Nothing: all is well." in text
    assert "<html" not in text


def test_the_state_is_shown_to_those_who_are_signed_in_alone():
    assert Client().get("/admin/overview/state/").status_code == 302
    assert logged_in().post("/admin/overview/state/").status_code == 405
