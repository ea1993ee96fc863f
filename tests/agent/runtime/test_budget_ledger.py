"""Budgets: what calls under way may cost counts before they are made, and what one process knows
agrees with the record."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.domain.endpoint import Endpoint, TokenPrices
from agent.domain.errors import BudgetSpent
from agent.domain.types import AccountSettings
from agent.llm.meter import CallCost, Spend, scope, spending_for
from agent.llm.spend_gate import SpendHold
from agent.models import Budget, Message, ModelEndpoint
from agent.record.accounts import AccountRows
from agent.record.budgets import BudgetAlarms, load_budgets
from agent.record.record import Record
from agent.record.spendings import current_day
from agent.runtime import budget_ledger
from agent.runtime.budget_ledger import BudgetLedger
from tests.agent.talk import Mailbox
from tools.registry.settings import SettingsCache

pytestmark = pytest.mark.django_db(transaction=True)

ANN = {"account": "onebot:10001", "person": "onebot:10001/20001"}
PRICED = Endpoint("http://m", pk=7, prices=TokenPrices(input=1, output=10, currency="CNY"))
FREE = Endpoint("http://local", pk=8)


async def ledger(record: Record, owners: str = "", **options: Any) -> BudgetLedger:
    mailbox = Mailbox()
    mailbox.account_settings = lambda account: AccountSettings(frozenset(owners.split()))  # type: ignore[method-assign]
    made = BudgetLedger(record, BudgetAlarms(AccountRows(mailbox)), **options)
    await sync_to_async(made.reload)()
    return made


async def budget(**fields: Any) -> Budget:
    await sync_to_async(Budget.objects.all().delete)()
    usual = {"name": "b", "kind": "person", "unit": "tokens", "limit": 1_000}
    row: Budget = await sync_to_async(Budget.objects.create)(**usual | fields)
    return row


async def held(gate: BudgetLedger, tokens: int = 100, endpoint: Endpoint = FREE) -> SpendHold:
    return await gate.hold(endpoint, tokens, 0)


def spend(gate: BudgetLedger, tokens: int, **cost: Any) -> None:
    gate.spend(Spend(CallCost(8, "m", input=tokens, **cost), scope.get()))


async def test_a_burst_overshoots_by_no_more_than_it_holds(record):
    await budget(limit=1_000)
    gate = await ledger(record)
    with spending_for(**ANN):
        asked = await asyncio.gather(*(held(gate) for _ in range(100)), return_exceptions=True)
        holds = [one for one in asked if not isinstance(one, BaseException)]
        assert (len(holds), sum(isinstance(one, BudgetSpent) for one in asked)) == (10, 90)
        for hold in holds:
            spend(gate, 100)
            hold.release()
            hold.release()
        with pytest.raises(BudgetSpent):
            await held(gate)
    with spending_for(person="onebot:10001/20002"):
        await held(gate)


async def test_what_was_spent_before_the_start_counts(record):
    await budget(limit=1_000)
    with spending_for(**ANN):
        record.spend(Spend(CallCost(8, "m", input=950), scope.get()))
        with pytest.raises(BudgetSpent, match="“b”"):
            await held(await ledger(record))


async def test_what_is_spent_while_the_record_is_read_counts_once(record):
    await budget(limit=10_000)
    gate = await ledger(record)
    loop, go = asyncio.get_running_loop(), threading.Event()
    has_begun = loop.create_future()

    def stay(items: Sequence[None]) -> Sequence[None]:
        loop.call_soon_threadsafe(has_begun.set_result, None)
        go.wait(5)
        return items

    with spending_for(**ANN):
        spend(gate, 1_000)
        first = asyncio.ensure_future(held(gate, 1))
        await asyncio.sleep(0)
        stayed = record.submit(stay, None)  # in the transaction that reads
        spend(gate, 2_000)
        await has_begun
        spend(gate, 3_000)
        go.set()
        (await first).release()
        await stayed
        (await held(gate, 4_000)).release()
        for same in (gate, await ledger(record)):
            with pytest.raises(BudgetSpent):
                await held(same, 4_001)


async def test_a_cost_that_was_refused_by_the_record_is_not_remembered(record):
    await budget(unit="CNY", limit=1)
    gate = await ledger(record)
    with spending_for(**ANN):
        (await held(gate, 1, PRICED)).release()
        spend(gate, 0, cost_nano=2**70, currency="CNY")
        with pytest.raises(BudgetSpent):
            await held(gate, 1, PRICED)
        await asyncio.wait([record.submit(lambda items: [None for _ in items], None)])
        (await held(gate, 1, PRICED)).release()


async def test_owners_go_on_where_only_owners_are_answered(record):
    await budget(limit=10, at_limit="owners")
    gate = await ledger(record)
    with spending_for(**ANN, is_owner=True):
        await held(gate)
    with spending_for(**ANN), pytest.raises(BudgetSpent):
        await held(gate)
    await budget(limit=10, at_limit="sentence")
    await sync_to_async(gate.reload)()
    with spending_for(**ANN, is_owner=True), pytest.raises(BudgetSpent):
        await held(gate)


async def test_another_endpoint_answers_within_its_own_budget(record):
    other = await sync_to_async(ModelEndpoint.objects.create)(name="local")
    await budget(kind="total", limit=10, at_limit="cheaper", cheaper=other)
    await sync_to_async(Budget.objects.create)(
        name="own", kind="endpoint", subject=str(other.pk), unit="tokens", limit=150
    )
    gate, cheaper = await ledger(record), Endpoint("http://local", pk=other.pk)
    with pytest.raises(BudgetSpent) as stopped:
        await held(gate)
    assert (stopped.value.name, stopped.value.cheaper) == ("b", other.pk)
    await held(gate, endpoint=cheaper)
    with pytest.raises(BudgetSpent, match="own"):
        await held(gate, endpoint=cheaper)


async def test_money_is_held_at_the_dearest_and_what_is_free_costs_nothing_of_it(record):
    await budget(kind="total", unit="CNY", limit="0.003")
    gate = await ledger(record)
    await gate.hold(PRICED, 1_000, 200)
    with pytest.raises(BudgetSpent):
        await gate.hold(PRICED, 1, 0)
    await gate.hold(FREE, 1_000_000, 0)


async def test_a_day_and_a_month_begin_anew(record, monkeypatch):
    await budget(limit=1_000)
    await sync_to_async(Budget.objects.create)(
        name="month", kind="person", unit="tokens", limit=1_500, period="month"
    )
    gate, day = await ledger(record), ["2026-01-30"]
    monkeypatch.setattr(budget_ledger, "current_day", lambda: day[0])
    with spending_for(**ANN):
        (await held(gate)).release()
        spend(gate, 950)
        for day[0], stopped_by in (("2026-01-30", "b"), ("2026-01-31", ""), ("2026-02-01", "")):
            if stopped_by:
                with pytest.raises(BudgetSpent, match=stopped_by):
                    await held(gate)
            else:
                (await held(gate)).release()
                spend(gate, 500 if day[0] < "2026-02" else 0)
        day[0] = "2026-01-31"
        with pytest.raises(BudgetSpent, match="month"):
            await held(gate)


async def test_without_a_budget_for_it_a_call_asks_nothing_of_the_record(record, monkeypatch):
    await budget(kind="chat")
    gate = await ledger(record)
    with spending_for(**ANN), monkeypatch.context() as patched:
        patched.setattr(record, "submit", lambda *_: pytest.fail("it was asked"))
        (await held(gate)).release()


async def test_few_sums_are_remembered_and_those_forgotten_are_read_again(record, monkeypatch):
    monkeypatch.setattr(budget_ledger, "REMEMBERED_SUMS", 3)
    await budget(limit=1_000)
    gate = await ledger(record)
    for number in (*range(10), 0):
        with spending_for(person=f"onebot:10001/{number}"):
            (await held(gate, 1)).release()
            spend(gate, 600)
    assert len(gate._sums) <= 3
    with spending_for(person="onebot:10001/0"), pytest.raises(BudgetSpent):
        await held(gate, 1)


async def test_a_sum_that_others_add_to_is_read_again_after_some_seconds(record):
    now = [0.0]
    await budget(limit=1_000)
    one, other = await ledger(record, clock=lambda: now[0]), await ledger(record)
    one.shares_database = True
    with spending_for(**ANN):
        (await held(one)).release()
        spend(other, 950)
        (await held(one)).release()
        now[0] += budget_ledger.REFRESH_SECONDS
        with pytest.raises(BudgetSpent):
            await held(one)


async def test_owners_are_told_at_80_and_at_100_percent_once_in_all_processes(record):
    await budget(limit=1_000)
    gates = [await ledger(record, "owner"), await ledger(record, "owner")]
    for number, gate in enumerate(gates):
        with spending_for(account="onebot:10001", person=f"onebot:10001/{number}"):
            (await held(gate)).release()
            for _ in range(11):
                spend(gate, 100)
    await asyncio.wait([record.submit(lambda items: [None for _ in items], None)])
    notes = Message.objects.filter(reason="owner_note").order_by("pk")
    told = [row.text async for row in notes]
    assert len(told) == 2
    assert all("onebot:10001/0" in words for words in told)


async def test_a_budget_without_its_other_endpoint_answers_owners_only(record):
    await budget(at_limit="cheaper")
    [terms] = await sync_to_async(load_budgets)()
    assert terms.action == "owners"
    assert terms.period_start(current_day()) == current_day()


async def test_a_process_that_begins_reads_what_another_spent(record):
    await budget(limit=1_000)
    other = Record("p2", SettingsCache(), lambda: None)
    with spending_for(**ANN):
        (await ledger(other)).spend(Spend(CallCost(8, "m", input=950), scope.get()))
        await other.close()
        with pytest.raises(BudgetSpent):
            await held(await ledger(record))
