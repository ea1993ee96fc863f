"""Whose turn it is: bursts, rates, order, and the memory that it takes."""

from agent.domain.types import ChatAddress
from onebot.gateway.delivery import SWEEP_FROM, Pacer


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def group(number: int = 1, account: str = "10001") -> ChatAddress:
    return ChatAddress(account, "group", str(number))


def pacer(clock: Clock | None = None, jitter: float = 0.0) -> Pacer:
    return Pacer(clock or Clock(), lambda: jitter)


def test_a_chat_has_a_burst_of_half_a_minute_and_then_its_rate():
    paced = pacer()
    turns = [paced.next_turn(group(), 0, 20) for _ in range(13)]
    assert turns == [0.0] * 10 + [3.0, 6.0, 9.0]
    assert [pacer().next_turn(group(), 0, 2) for _ in range(5)] == [0.0] * 5


def test_fifty_answers_at_once_are_spread_over_the_accounts_rate_in_order():
    """Checklist 98."""
    paced = pacer()
    turns = [paced.next_turn(group(number), 60, 20) for number in range(50)]
    assert turns == sorted(turns)
    assert turns[:30] == [0.0] * 30
    assert turns[30:33] == [1.0, 2.0, 3.0]
    assert turns[-1] == 20.0


def test_a_slow_chat_holds_up_no_other():
    paced = pacer()
    for _ in range(20):
        paced.next_turn(group(1), 60, 5)
    assert paced.next_turn(group(2), 60, 5) == 0.0
    assert paced.next_turn(group(1, "10002"), 60, 5) == 0.0


def test_turns_of_one_chat_stay_in_order_whatever_the_jitter():
    clock, offsets = Clock(), iter([0.3, 0.0, 0.2, 0.0] * 10)
    paced = Pacer(clock, lambda: next(offsets))
    turns = [paced.next_turn(group(), 600, 1_000) for _ in range(330)][300:]
    assert turns == sorted(turns)
    assert turns[0] > 0


def test_a_rest_gives_the_burst_back_and_a_new_rate_counts_at_once():
    clock = Clock()
    paced = pacer(clock)
    for _ in range(11):
        paced.next_turn(group(), 0, 20)
    clock.now += 60
    assert [paced.next_turn(group(), 0, 20) for _ in range(10)] == [0.0] * 10
    assert paced.next_turn(group(), 0, 0) == 0.0
    assert paced.next_turn(group(), 0, 600) == 0.0


def test_no_limit_remembers_nothing_and_limits_remember_what_counts():
    clock = Clock()
    paced = pacer(clock)
    assert paced.next_turn(group(), 0, 0) == 0.0
    assert not paced._lanes
    for number in range(5 * SWEEP_FROM):
        paced.next_turn(group(number), 0, 60)
        clock.now += 1
    assert len(paced._lanes) <= SWEEP_FROM + 1
