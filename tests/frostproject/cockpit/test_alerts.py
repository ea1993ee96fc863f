"""What the first page says needs somebody: each kind of trouble, and only within reach."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone, translation

from agent.domain.types import playground_account
from agent.models import (
    ActivitySum,
    Approval,
    Budget,
    BudgetStop,
    ChatGrant,
    ChatSession,
    EndpointStatus,
    JoinRequest,
    Manners,
    Message,
    ModelEndpoint,
    ServerProcess,
    SpendSum,
)
from agent.record.sums.budgets import mirror_environment
from frostproject.cockpit.alert import Alert
from frostproject.cockpit.alerts import find_alerts
from frostproject.cockpit.viewer import find_viewer
from frostproject.models import FailedSignIns, SeenAlert
from onebot.models import Bot
from tests.admin.record import answered, call_of, chat, logged_in, page, run_for, said, step_of
from tools.local_time import counted_hour, current_day
from tools.mcp.models import McpServer, McpServerStatus
from tools.models import ToolConfig
from tools.plugins.models import Plugin, PluginStatus

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _reads_english() -> Iterator[None]:
    with translation.override("en"):
        yield


def alerts(user: User) -> list[Alert]:
    return list(find_alerts(find_viewer(user)))


def superuser() -> User:
    return User.objects.create_superuser("root")


def owner_of(session: ChatSession) -> User:
    logged_in("chat_owner")
    user = User.objects.get(username="user-chat_owner")
    ChatGrant.objects.create(user=user, account=session.account, chat=session.key)
    return user


def unknown_send(session: ChatSession) -> None:
    day, hour = counted_hour(timezone.now())
    ActivitySum.objects.create(day=day, hour=hour, session=session, unknown=2)
    for words in ("one", "two"):
        answered(said(session), words, state="unknown")


def approval(session: ChatSession) -> None:
    call = call_of(step_of(run_for(said(session))))
    times = {"created_at": timezone.now(), "expires_at": timezone.now() + timedelta(hours=1)}
    Approval.objects.create(
        call=call, session=session, code=str(session.pk), state="waiting", **times
    )


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


def cannot_speak(session: ChatSession) -> None:
    now = timezone.now()
    Bot.objects.create(self_id=session.account, online=True, cannot_speak_since=now)


def silence(session: ChatSession) -> None:
    chats = {"account": session.account, "chats": session.key}
    Manners.objects.create(name="hush", silenced=True, **chats)


def request(session: ChatSession) -> None:
    asked = {"account": session.account, "group_id": session.peer_id, "kind": "join"}
    JoinRequest.objects.create(user_id="20002", flag="f", **asked)


IN_CHATS = (
    *(unknown_send, approval, request, taken_over, paused, disconnected, account_offline),
    *(cannot_speak, silence),
)
KINDS = {"unknown_send": "unknown_sends", "approval": "approvals", "request": "requests"}


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
    of_http = {"transport": "streamable_http", "url": "https://a.example/mcp"}
    server = McpServer.objects.create(name="maps", **of_http)
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


def clock_ahead() -> None:
    session = chat("799")
    for seconds in (60, 30, 0):
        came = timezone.now() - timedelta(seconds=seconds)
        row = said(session, state="expired", reason="too_old")
        happened = came - timedelta(minutes=6)
        Message.objects.filter(pk=row.pk).update(created_at=came, happened_at=happened)


OF_ALL = {
    "clock": clock_ahead,
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
    told = [one.kind for one in alerts(owner_of(chat()))]
    assert told == (["silence"] if kind == "silence" else [])  # which is that of his chat too


def untold(session: ChatSession) -> None:
    approval(session)
    Approval.objects.update(state="approved", decided_at=timezone.now())
    call = Approval.objects.get().call
    told: dict[str, Any] = {
        "reason": "later_result",
        "detail": "the budget “b” is used up",
        "tool_call": call,
    }
    said(session, state="silent", **told)


def new_tool() -> None:
    ToolConfig.objects.create(name="new", fingerprint="f")


#: What the page has that an alert leads to: the act that it asks for.
ACTS = {
    "unknown_sends": "/act/resend/",
    "approvals": 'value="approve"',
    "requests": "/act/approve/",
    "taken_over": "/act/hand-back/",
    "paused": "/act/lift/",
    "disconnected": "/delete/",
    "account_offline": 'name="_continue"',  # in the client; here is all that is known of it
    "cannot_speak": 'name="_continue"',
    "clock": "result_list",  # set outside; here are the messages that were too old
    "model": "/test/",
    "mcp": "reconnect-server",
    "plugin": "/reload/",
    "budget": "/admin/spending/budget/",
    "untold": 'name="text"',
    "sign_ins": "begin_app",
    "silence": 'name="_save"',
    "no-model": 'name="_save"',
    "new_tools": 'value="look"',
}
#: Without a link: the disk is the machine's, and of an outage every page tells in a banner; nothing
#: in the admin helps against either.
OUTSIDE = {"disk", "outage"}
CAUSES = [*IN_CHATS, *OF_ALL.values(), new_tool, untold]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_alert_leads_to_a_page_with_the_button_of_its_act(cause: Any, browser: Client):
    cause(chat()) if cause in (*IN_CHATS, untold) else cause()
    viewer = User.objects.get(username="user-")
    found = alerts(viewer)
    kind = KINDS.get(cause.__name__, cause.__name__)
    alert, *_ = [one for one in found if one.kind in (kind, *_kinds_of(cause))]
    address, _hash, place = alert.url.partition("#")
    text = page(browser, address)
    act = 'name="speak"' if cause is silenced else ACTS[alert.kind]
    assert act in text.partition('id="content"')[2]
    assert not place or f'id="{place}"' in text


def test_tokens_of_the_day_are_told_of_before_other_budgets_and_raised_outside(
    browser: Client, settings: Any
):
    Budget.objects.all().delete()
    Budget.objects.bulk_create(
        Budget(name=f"b{number}", limit=1, unit="tokens") for number in range(10)
    )
    settings.TOKENS_PER_DAY = 100
    mirror_environment()
    SpendSum.objects.create(day=current_day(), kind="total", input_tokens=85)
    first, *_ = [one for one in alerts(superuser()) if one.kind == "budget"]
    assert first.text == "The budget “.env: TOKENS_PER_DAY” is used to 85 %."
    assert ".env" in first.advice
    assert "/budget/add/" in page(browser, first.url)


def _kinds_of(cause: Any) -> list[str]:
    of_all = {**OF_ALL, "new_tools": new_tool}
    return [kind for kind, one in of_all.items() if one is cause]


def test_only_what_was_not_sent_again_is_told_of():
    session = chat()
    unknown_send(session)
    first, second = Message.objects.filter(state="unknown").order_by("pk")
    answered(said(session), resent_from=second)
    (alert,) = [one for one in alerts(superuser()) if one.kind == "unknown_sends"]
    assert alert.url.endswith(f"#m{first.pk}")
    assert alert.others[1] == ""
    answered(said(session), resent_from=first)
    assert "unknown_sends" not in [one.kind for one in alerts(User.objects.get(username="root"))]


def test_calls_that_wait_are_rows_the_most_urgent_first_and_the_rest_is_counted():
    for number in range(8):
        approval(chat(f"{number}"))
    urgent = Approval.objects.latest("pk")
    Approval.objects.filter(pk=urgent.pk).update(expires_at=timezone.now())
    first, *others = [one for one in alerts(superuser()) if one.kind == "approvals"]
    assert first.url == f"/admin/agent/approval/{urgent.pk}/change/"
    assert len(others) == 5
    assert others[-1].text == "3 more tool calls wait for an owner."


def acts_of(kind: str, user: User) -> list[tuple[str, bool]]:
    """What can be done in the first row of a kind, and whether it is a form."""
    alert = next(one for one in alerts(user) if one.kind == kind)
    return [(act.label, act.posted is not None) for act in alert.acts]


def test_rows_have_the_acts_that_the_reader_may_do_and_no_others():
    here = chat("700")
    approval(here)
    unknown_send(here)
    dead_server()
    spent_budget()
    logged_in("viewer")
    root, owner = superuser(), owner_of(here)
    viewer = User.objects.get(username="user-viewer")
    decides = [("Approve", True), ("Refuse", True), ("See the chat", False)]
    assert acts_of("approvals", root) == acts_of("approvals", owner) == decides
    resends = [("See the chat", False), ("Send again, perhaps twice", True)]
    assert acts_of("unknown_sends", root) == acts_of("unknown_sends", owner) == resends
    assert acts_of("mcp", root) == [("Reconnect", True)]
    assert acts_of("budget", root) == [("Raise it", False)]
    for kind in ("approvals", "unknown_sends"):
        assert acts_of(kind, viewer) == [("See the chat", False)]
    assert acts_of("mcp", viewer) == acts_of("budget", viewer) == []


def test_a_call_is_approved_in_its_row_and_the_overview_says_so(browser: Client):
    approval(chat())
    (act, _refuse, _see) = next(one for one in alerts(superuser()) if one.kind == "approvals").acts
    answer = browser.post(act.url, {**(act.posted or {}), "next": "/admin/"}, follow=True)
    assert answer.redirect_chain == [("/admin/", 302)]
    assert "Approved." in answer.content.decode()
    assert Approval.objects.get().state == "approved"


def test_a_call_whose_arguments_are_cut_is_not_approved_in_its_row():
    approval(chat())
    Approval.objects.update(arguments={"text": "long " * 50})
    labels = [label for label, _is_form in acts_of("approvals", superuser())]
    assert labels == ["Decide", "Refuse", "See the chat"]


def put_away(browser: Client, alert: Alert, **values: str) -> str:
    """The state of the overview after an alert was put away."""
    page(browser, "/admin/")
    form = {"alert": alert.digest, **values}
    answer = browser.post("/admin/overview/seen/", form, headers={"hx-request": "true"})
    return str(answer.content.decode())


def told(text: str) -> str:
    """What of the state is told, without what was put away."""
    return text.partition('class="alerts"')[2].partition("put-away")[0]


def test_what_was_put_away_stays_away_until_it_says_something_else(browser: Client):
    failing_model()
    root = User.objects.get(username="user-")
    (alert,) = alerts(root)
    assert "<title>(1) Overview" in page(browser, "/admin/")
    text = put_away(browser, alert)
    assert 'data-kind="model"' not in told(text)
    assert "1 put away" in text
    assert "<title>Overview" in text
    assert 'data-kind="model"' not in told(page(browser, "/admin/"))
    later = timezone.now() + timedelta(minutes=3)  # fails again, in the same way
    EndpointStatus.objects.update(error_at=later)
    assert 'data-kind="model"' not in told(page(browser, "/admin/"))
    EndpointStatus.objects.update(error="something else")
    assert 'data-kind="model"' in told(page(browser, "/admin/"))


def test_what_was_put_away_is_told_again_once_it_ended_and_came_back(browser: Client):
    ModelEndpoint.objects.create(name="m", base_url="https://a.example/v1", model="m")
    silenced()
    (alert,) = alerts(User.objects.get(username="user-"))
    put_away(browser, alert)
    Manners.objects.update(enabled=False)
    page(browser, "/admin/")
    assert not SeenAlert.objects.exists()
    Manners.objects.update(enabled=True)
    assert 'data-kind="silence"' in told(page(browser, "/admin/"))


def test_what_one_has_put_away_others_are_told_of_and_it_can_be_shown_again(browser: Client):
    failing_model()
    (alert,) = alerts(User.objects.get(username="user-"))
    put_away(browser, alert)
    assert 'data-kind="model"' in told(page(logged_in("viewer"), "/admin/"))
    assert 'data-kind="model"' in told(put_away(browser, alert, again="1"))


def test_nobody_puts_away_what_is_not_within_reach():
    failing_model()
    (alert,) = alerts(superuser())
    session = chat()
    owner_of(session)
    client = Client()
    client.force_login(User.objects.get(username="user-chat_owner"))
    for digest in (alert.digest, "", "x" * 5_000):
        client.post("/admin/overview/seen/", {"alert": digest})
    assert not SeenAlert.objects.exists()


@pytest.mark.parametrize(
    ("state", "words"), [("unknown", "all the same"), ("failed", "Send again")]
)
def test_message_that_was_not_sent_has_the_button_on_its_page(
    state: str, words: str, browser: Client
):
    message = answered(said(chat()), state=state)
    place = f"/admin/agent/message/{message.pk}/change/"
    assert words in page(browser, place)
    assert "/act/resend/" not in page(logged_in("viewer"), place)
    answered(said(message.session), resent_from=message)
    assert "/act/resend/" not in page(browser, place)


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


def during_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    outage = SimpleNamespace(since=timezone.now(), reason="disk full")
    served = SimpleNamespace(get_serving=lambda: SimpleNamespace(outage=lambda: outage))
    monkeypatch.setattr("frostproject.cockpit.alerts.serving", served)


def test_trouble_that_nothing_here_helps_against_has_no_link(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("frostproject.cockpit.alerts.LEAST_FREE", 2**62)
    during_outage(monkeypatch)
    assert {one.kind for one in alerts(superuser()) if not one.url} == OUTSIDE


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


def stopped_budget(session: ChatSession, limit: int = 1_000) -> None:
    subject = f"onebot:{session.account}:{session.key}"
    row = Budget.objects.create(name="each", kind="chat", limit=limit, unit="tokens")
    SpendSum.objects.create(day=current_day(), kind="chat", subject=subject, input_tokens=700)
    now = timezone.now()
    facts = {"period_start": current_day(), "needed": 400, "at": now}
    BudgetStop.objects.create(budget=row, subject=subject, **facts)


def test_who_runs_a_chat_is_told_of_a_budget_that_stops_it_and_of_no_other():
    here, elsewhere = chat("700", title="Garden"), chat("800", title="Cellar")
    stopped_budget(here)
    told = (
        "The budget “each” of Garden is stopped: 300 tokens left, and a call may take 400 tokens."
    )
    for user in (superuser(), owner_of(here)):
        (alert,) = [one for one in alerts(user) if one.kind == "budget"]
        assert (alert.text, alert.level) == (told, "bad")
    assert alert.url == f"/admin/agent/chatsession/{here.pk}/change/"
    ChatGrant.objects.update(account=elsewhere.account, chat=elsewhere.key)
    assert alerts(User.objects.get(username="user-chat_owner")) == []


def test_a_budget_that_was_raised_stops_nobody():
    stopped_budget(chat("700"), limit=1_100)
    assert "budget" not in [one.kind for one in alerts(superuser())]


def test_the_budget_on_everything_stands_in_the_rows_of_what_was_spent(browser: Client):
    spent_budget()
    BudgetStop.objects.create(
        budget=Budget.objects.get(name="all"),
        period_start=current_day(),
        needed=16,
        at=timezone.now(),
    )
    text = page(browser, "/admin/")
    assert "Received today" in text
    assert "85 % of 100 tokens a day" in text
    assert "15 tokens left, and a call may take 16 tokens" in text


def test_an_approved_call_of_which_the_chat_did_not_hear_is_told_of():
    here = chat("700", title="Garden")
    approval(here)
    Approval.objects.update(state="approved", decided_at=timezone.now())
    call = Approval.objects.get().call
    news = said(here, state="silent", reason="later_result", tool_call=call)
    assert "untold" not in [one.kind for one in alerts(superuser())]
    for state, detail in (("silent", "the budget “b” is used up"), ("failed", "retcode 100")):
        Message.objects.filter(pk=news.pk).update(state=state, detail=detail)
        (alert,) = [one for one in alerts(owner_of(here)) if one.kind == "untold"]
        assert "Garden" in alert.text
        User.objects.filter(username="user-chat_owner").delete()


def test_a_daily_backup_that_failed_is_told_while_it_is_switched_on(
    browser: Client, settings: Any, tmp_path: Any
):
    viewer = User.objects.get(username="user-")
    settings.BACKUP_DIR, settings.DAILY_BACKUP = tmp_path, True
    (tmp_path / "failed.txt").write_text("There is no room for it.")
    (alert,) = [one for one in alerts(viewer) if one.kind == "backup"]
    assert "There is no room for it." in alert.text
    assert 'name="daily_backup"' in page(browser, alert.url)
    settings.DAILY_BACKUP = False
    assert [one for one in alerts(viewer) if one.kind == "backup"] == []


def test_a_newer_version_is_told_to_those_who_run_the_server_while_an_address_is_set(
    settings: Any, tmp_path: Any
):
    settings.DATA_DIR, settings.VERSION_URL = tmp_path, "https://example.org/latest"
    (tmp_path / "newest_version").write_text("https://example.org/latest\n99.1")
    chief = superuser()
    (alert,) = [one for one in alerts(chief) if one.kind == "version"]
    assert "99.1" in alert.text
    assert "version" not in [one.kind for one in alerts(owner_of(chat("700")))]
    settings.VERSION_URL = ""
    assert "version" not in [one.kind for one in alerts(chief)]


def test_an_account_that_was_closed_for_its_silence_is_told_of_as_such():
    now = timezone.now()
    Bot.objects.create(self_id="10001", disconnected_at=now, silent_at=now)
    (alert,) = [one for one in alerts(superuser()) if one.kind == "disconnected"]
    assert "fell silent" in alert.text
