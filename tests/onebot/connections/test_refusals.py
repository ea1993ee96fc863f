"""Refused clients: kept within bounds, told in words."""

import pytest
from django.utils import translation

from onebot.connections.handshake import (
    MOST_KEPT,
    Handshake,
    HandshakePolicy,
    HandshakeRefused,
    RefusalList,
    explain_refusal,
    judge_handshake,
)


def test_refusals_of_one_client_are_one_and_the_newest_comes_first():
    now = [1_000.0]
    kept = RefusalList(lambda: now[0])
    for at, peer in ((1_000, "a"), (1_001, "b"), (1_002, "a")):
        now[0] = at
        kept.note(peer, "why")
    assert [(one.peer, one.count) for one in kept.recent(60)] == [("a", 2), ("b", 1)]
    assert [one.peer for one in kept.recent(0.5)] == ["a"]


def test_a_flood_of_refusals_keeps_the_newest_within_the_bound():
    kept = RefusalList()
    for number in range(MOST_KEPT + 5):
        kept.note(f"10.0.0.{number}", "x" * 10_000)
    found = kept.recent(60)
    assert len(found) == MOST_KEPT
    assert max(len(one.reason) for one in found) <= 300


@pytest.mark.parametrize(
    ("headers", "subprotocols", "text"),
    [
        ({}, (), "no access token"),
        ({"authorization": "Bearer no"}, (), "wrong access token"),
        ({"authorization": "Bearer yes", "x-self-id": "m e"}, (), "X-Self-ID"),
        ({"authorization": "Bearer yes", "x-client-role": "boss"}, (), "X-Client-Role"),
        ({"origin": "https://evil.example"}, (), "https://evil.example"),
        ({}, ("12.walle",), "OneBot 12"),
    ],
)
def test_each_refused_handshake_is_told_in_words(headers, subprotocols, text):
    policy = HandshakePolicy("yes", ())
    policy.accounts.replace({})
    asked = Handshake("/ws/frostagent", "", headers, "10.0.0.1", subprotocols)
    refused = judge_handshake(asked, policy)
    assert isinstance(refused, HandshakeRefused)
    with translation.override("en"):
        told = explain_refusal(refused.reason)
    assert text in told.text
    assert told.advice
    assert told.text != refused.reason


def test_an_unknown_reason_is_its_own_words():
    assert explain_refusal("100% new").text == "100% new"
