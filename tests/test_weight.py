"""What a plain message and the pages of every day may take, counted without a clock. Whoever must
raise a figure of ``.ci/weight.toml`` does it in the commit that makes one dearer, with the
reason."""

import tomllib
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agent.models import ActivitySum, Manners, Run, SpendSum
from benchmarks import walk
from benchmarks.process import ROOT
from onebot.models import Bot
from tests.admin.record import answered, call_of, chat, logged_in, page, run_for, said, step_of
from tests.environment import PROJECT
from tools.local_time import current_day
from tools.models import ToolConfig

FIGURES = tomllib.loads((PROJECT / ".ci" / "weight.toml").read_text(encoding="utf-8"))
#: The pages that operators look at every day, by their names in the file.
DAILY = {
    "overview": "admin:index",
    "chats": "admin:agent_chatsession_changelist",
    "chat": "admin:agent_chatsession_change",
    "runs": "admin:agent_run_changelist",
    "run": "admin:agent_run_change",
    "tools": "admin:tools_toolconfig_changelist",
    "spending": "admin:spending",
    "bots": "admin:onebot_bot_changelist",
    "manners": "admin:agent_manners_changelist",
}


@pytest.mark.slow
def test_a_plain_message_takes_no_more_than_is_written_down():
    most = FIGURES["message"]
    count = walk.measure(ROOT)
    took = {name: len(count[name]) if name == "files" else count[name] for name in most}
    over = {name: f"{took[name]} > {most[name]}" for name in most if took[name] > most[name]}
    assert not over, f"{over}; python -m benchmarks.walk --list says which they are"


def test_what_a_server_does_beside_some_messages_only_is_not_counted():
    plain = {"files": {"a.py": 2}, "functions": {"a.py:f": 2}, "sql": {"BEGIN": 1}}
    beside = {"files": {"a.py": 2, "b.py": 1}, "functions": {"a.py:f": 3, "b.py:g": 1}}
    beside |= {"sql": {"BEGIN": 2}}
    counts = [plain | {"commits": 1, "hops": 2}, beside | {"commits": 2, "hops": 1}]
    counted = walk.common(counts)
    assert counted["files"] == {"a.py": 2}
    sums = {name: counted[name] for name in ("calls", "statements", "commits", "hops")}
    assert sums == {"calls": 2, "statements": 1, "commits": 1, "hops": 1}


@pytest.mark.django_db
def test_no_daily_page_takes_more_queries_than_are_written_down():
    run = record()[0]
    of_one = {"chat": run.session_id, "run": run.pk}
    browser, took = logged_in(), dict[str, int]()
    for name, address in DAILY.items():
        url = reverse(address, args=[of_one[name]] if name in of_one else [])
        page(browser, url)  # what Django remembers for good is asked here
        with CaptureQueriesContext(connection) as queries:
            page(browser, url)
        took[name] = len(queries)
    most = FIGURES["pages"]
    assert took.keys() == most.keys()
    over = {name: f"{took[name]} > {most[name]}" for name in most if took[name] > most[name]}
    assert not over, f"{over}: ask less, or raise [pages] in .ci/weight.toml and say why"


def record() -> list[Run]:
    """Two accounts, and five rows of everything else that the pages show, so that a query for each
    of them is seen; the runs."""
    for number in range(2):
        Bot.objects.create(self_id=f"1000{number}", online=number == 0)
    return [_run_of_a_day(number, f"1000{number % 2}") for number in range(5)]


def _run_of_a_day(number: int, account: str) -> Run:
    session, person, today = (
        chat(str(700 + number), account=account),
        f"2000{number}",
        current_day(),
    )
    place = f"{session.platform}:{account}:{session.key}"
    said(session, sender_id=person)
    usual: dict[str, Any] = {"state": "answered", "reason": "mention", "in_history": True}
    message = said(session, sender_id=person, **usual)
    answered(message)
    run = run_for(message, state="failed" if number % 2 else "finished")
    call_of(step_of(run))
    ActivitySum.objects.create(day=today, session=session, received=2)
    for kind, subject in (("chat", place), ("person", f"onebot:{account}/{person}")):
        SpendSum.objects.create(day=today, kind=kind, subject=subject, input_tokens=9)
    Manners.objects.create(name=f"manners {number}", account=account, chats=[session.key])
    ToolConfig.objects.create(name=f"tool_{number}")
    return run
