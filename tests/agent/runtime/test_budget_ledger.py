"""Budgets: what calls under way may cost counts before they are made, and what one process knows
agrees with the record."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.domain.budgets import Shortage
from agent.domain.endpoint import Endpoint, TokenPrices
from agent.domain.errors import BudgetSpent
from agent.llm.spending import CallCost, Spend, SpendHold, scope, spending_for
from agent.models import Budget, BudgetStop, Message, ModelEndpoint
from agent.record.record import Record
from agent.record.sums.budgets import BudgetAlarms, load_budgets, mirror_environment
from agent.runtime import budget_ledger
from agent.runtime.budget_ledger import BudgetLedger
from tests.agent.talk import give_owners
from tools.local_time import current_day, first_of_day

pytestmark = pytest.mark.django_db(transaction=True)

ANN = {"account": "onebot:10001", "person": "onebot:10001/20001"}
PRICES = TokenPrices(input=1, output=10, currency="CNY")
PRICED = Endpoint("http://m", pk=7, prices=PRICES, timeout_seconds=0.1)
FREE = Endpoint("http://local", pk=8, timeout_seconds=0.1)
PATIENT = replace(FREE, timeout_seconds=60)


async def ledger(record: Record, owners: str = "", **options: Any) -> BudgetLedger:
    give_owners(record.live, *owners.split())
    made = BudgetLedger(record, BudgetAlarms(record.live), **options)
    await reload(record)
    return made


async def reload(record: Record) -> None:
    await record.submit(record.run_starter.reload_settings)


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
        stayed = record.submit_batched(stay, None)  # in the transaction that reads
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
        await asyncio.wait([record.submit_batched(lambda items: [None for _ in items], None)])
        (await held(gate, 1, PRICED)).release()


async def test_owners_go_on_where_only_owners_are_answered(record):
    await budget(limit=10, at_limit="owners")
    gate = await ledger(record)
    with spending_for(**ANN, is_owner=True):
        await held(gate)
    with spending_for(**ANN), pytest.raises(BudgetSpent):
        await held(gate)
    await budget(limit=10, at_limit="sentence")
    await reload(record)
    with spending_for(**ANN, is_owner=True), pytest.raises(BudgetSpent):
        await held(gate)


async def test_another_endpoint_answers_within_its_own_budget(record):
    other = await sync_to_async(ModelEndpoint.objects.create)(name="local")
    await budget(kind="total", limit=10, at_limit="cheaper", cheaper=other)
    await sync_to_async(Budget.objects.create)(
        name="own", kind="endpoint", subject=str(other.pk), unit="tokens", limit=150
    )
    gate, cheaper = await ledger(record), replace(FREE, pk=other.pk)
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
    await asyncio.wait([record.submit_batched(lambda items: [None for _ in items], None)])
    notes = Message.objects.filter(reason="owner_note").order_by("pk")
    told = [row.text async for row in notes]
    assert len(told) == 2
    assert [("80%" in words, "1,000 tokens / 1,000 tokens" in words) for words in told] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize("is_shared", [False, True])
async def test_the_tokens_of_a_day_are_known_and_stop_no_call(record, settings, is_shared):
    now, day = [0.0], first_of_day(current_day())
    await sync_to_async(Budget.objects.all().delete)()
    settings.TOKENS_PER_DAY = 1_000
    await sync_to_async(mirror_environment)()
    gate = await ledger(record, clock=lambda: now[0])
    gate.shares_database = is_shared
    assert gate.known_tokens(day) is None
    (await held(gate, 5_000)).release()
    await record.submit_batched(lambda items: items, None)
    spend(gate, 1_200)
    assert gate.known_tokens(day) == 1_200
    (await held(gate, 5_000)).release()
    now[0] += budget_ledger.REFRESH_SECONDS if is_shared else budget_ledger.ALONE_SECONDS
    assert gate.known_tokens(day) is None


async def test_owners_of_each_account_are_told_once_of_the_tokens_of_a_day(record, settings):
    await sync_to_async(Budget.objects.all().delete)()
    settings.TOKENS_PER_DAY = 1_000
    await sync_to_async(mirror_environment)()
    gate = await ledger(record, "owner")
    with spending_for(account="onebot:10001", person="onebot:10001/1"):
        (await held(gate)).release()
        await record.submit_batched(lambda items: items, None)
        spend(gate, 1_200)
    tell = gate._alarms.tell_tokens_spent
    for _ in range(2):
        accounts = ["onebot:10001", "onebot:10002"]
        await record.submit(tell, accounts, first_of_day(current_day()))
    notes = Message.objects.filter(reason="owner_note").order_by("pk")
    told = [(row.session.account, row.text) async for row in notes.select_related("session")]
    assert [account for account, _ in told] == ["10001", "10002"]
    assert len({words for _, words in told}) == 1
    assert "1,200 tokens / 1,000 tokens" in told[0][1]
    assert ".env" in told[0][1]


@pytest.mark.parametrize("name", [".env: TOKENS_PER_DAY", "mine"])
def test_the_environment_has_one_budget_as_long_as_it_limits_the_day(name, settings):
    Budget.objects.all().delete()
    Budget.objects.create(name=name, limit=7, unit="tokens")
    for settings.TOKENS_PER_DAY in (10**15, 10**15, 2_000):
        mirror_environment()
        [terms] = [one for one in load_budgets() if one.environment]
        assert (terms.limit, terms.kind, terms.period, terms.action, terms.unit) == (
            *(settings.TOKENS_PER_DAY, "total", "day", "owners", "tokens"),
        )
    settings.TOKENS_PER_DAY = 0
    mirror_environment()
    assert [one.name for one in load_budgets()] == [name]


async def test_a_budget_without_its_other_endpoint_answers_owners_only(record):
    await budget(at_limit="cheaper")
    [terms] = await sync_to_async(load_budgets)()
    assert terms.action == "owners"
    assert terms.period == "day"


async def test_a_process_that_begins_reads_what_another_spent(record):
    await budget(limit=1_000)
    other = Record("p2")
    with spending_for(**ANN):
        (await ledger(other)).spend(Spend(CallCost(8, "m", input=950), scope.get()))
        await other.close()
        with pytest.raises(BudgetSpent):
            await held(await ledger(record))


async def test_whom_only_others_are_in_the_way_of_waits_its_turn_and_nobody_is_turned_away(record):
    await budget(kind="total", limit=20_000)
    gate = await ledger(record)
    order: list[int] = []
    at_once = most = 0

    async def answer(number: int) -> None:
        nonlocal at_once, most
        hold = await held(gate, 6_000, PATIENT)
        order.append(number)
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        spend(gate, 15)
        at_once -= 1
        hold.release()

    await asyncio.gather(*map(answer, range(50)))
    assert (order, most) == ([*range(50)], 3)


async def test_who_gave_up_waiting_is_in_nobodys_way(record):
    await budget(kind="total", limit=1_000)
    gate = await ledger(record)
    first = await held(gate, 600)
    waiting = [asyncio.ensure_future(held(gate, tokens, PATIENT)) for tokens in (900, 300, 100)]
    await asyncio.sleep(0.05)
    assert not any(one.done() for one in waiting)  # the smaller ones came later
    waiting[0].cancel()
    holds = await asyncio.gather(*waiting[1:])
    first.release()
    for hold in holds:
        hold.release()
    (await held(gate, 1_000)).release()


async def test_who_waited_in_vain_is_told_why_and_so_are_owners_once(record):
    await budget(kind="total", limit=1_000)
    gate = await ledger(record, "owner")
    with spending_for(account="onebot:10001"):
        hold = await held(gate, 600)
        for _ in range(2):
            with pytest.raises(BudgetSpent) as refused:
                await held(gate, 600)
        assert refused.value.shortage == Shortage("1,000 tokens")
        hold.release()
        (await held(gate, 600)).release()
    await asyncio.wait([record.submit_batched(lambda items: [None for _ in items], None)])
    assert await Message.objects.filter(reason="owner_note").acount() == 1
    assert not await BudgetStop.objects.aexists()


async def test_what_is_left_and_what_was_needed_is_said_and_stays_on_record(record):
    row = await budget(limit=1_000)
    gate = await ledger(record, "owner")
    with spending_for(**ANN):
        spend(gate, 880)
        for tokens in (300, 200, 400):
            with pytest.raises(BudgetSpent) as refused:
                await held(gate, tokens)
            assert refused.value.shortage == Shortage("120 tokens", f"{tokens} tokens")
        (await held(gate, 120)).release()
    await asyncio.wait([record.submit_batched(lambda items: [None for _ in items], None)])
    stop = await BudgetStop.objects.aget()
    assert (stop.budget_id, stop.subject, stop.needed) == (row.pk, ANN["person"], 200)
    *_, note = [row async for row in Message.objects.filter(reason="owner_note").order_by("pk")]
    assert "剩 120 tokens" in note.text
    assert "300 tokens" in note.text
    assert "用完" not in note.text


async def test_the_outcome_of_an_earlier_call_has_a_reserve(record):
    await budget(limit=1_000)
    gate = await ledger(record)
    with spending_for(**ANN):
        spend(gate, 950)
        with pytest.raises(BudgetSpent):
            await held(gate, 100)
        with spending_for(is_outcome=True):
            (await held(gate, 150)).release()
            with pytest.raises(BudgetSpent):
                await held(gate, 151)


async def test_a_sum_that_is_foreseen_is_read_with_what_is_put_on_record_then(record):
    await budget()
    gate = await ledger(record)
    with spending_for(**ANN):
        gate.foresee(scope.get())
        await record.submit(int)
        hold = asyncio.create_task(held(gate))
        await asyncio.sleep(0)
        assert hold.done()  # without asking the record


async def test_what_every_reading_holds_is_forgotten_also_where_one_is_always_under_way(record):
    await budget()
    gate = await ledger(record)
    for number in range(20):
        with spending_for(**ANN):
            spend(gate, 1)
            posted = record.submit(int)
            await asyncio.sleep(0)  # the database thread takes what waits
            gate.foresee(replace(scope.get(), person=f"onebot:10001/{number}"))
            await posted
    assert len(gate._latest) < 5
