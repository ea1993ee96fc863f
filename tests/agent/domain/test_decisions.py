"""An owner's word in a chat: read when it is nothing else, and never guessed at."""

import pytest

from agent.domain.approvals import ApprovalReply, parse_approval_reply


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("批准 482913", ApprovalReply(True, "482913")),
        ("同意482913", ApprovalReply(True, "482913")),
        ("  Approve 482913\n", ApprovalReply(True, "482913")),
        ("拒绝 482913", ApprovalReply(False, "482913")),
        ("驳回 482913", ApprovalReply(False, "482913")),
        ("reject 482913", ApprovalReply(False, "482913")),
        ("[回复:-77] [@10002] 批准 482913", ApprovalReply(True, "482913")),
        ("批准４８２９１３", ApprovalReply(True, "482913")),
        ("[回复:-77] 批准", ApprovalReply(True, "")),
        ("拒绝", ApprovalReply(False, "")),
        ("[回复:-77] 批准。", ApprovalReply(True, "")),
        ("拒绝！！", ApprovalReply(False, "")),
        ("Approve 482913.", ApprovalReply(True, "482913")),
        ('批准 482913 {"amount": 5}', ApprovalReply(True, "482913", {"amount": 5})),
    ],
)
def test_a_word_is_read(text, word):
    assert parse_approval_reply(text) == word


@pytest.mark.parametrize(
    "text",
    [
        "批准了吗",
        "批准？",
        "批准。好吗",
        "批准 48291",
        "批准 4829131",
        "我批准 482913",
        "批准 482913 吧",
        "482913",
        "批准 482913 [1]",
        "不批准 482913",
        "批准 482913 是什么 {意思}？",
        "",
    ],
)
def test_everything_else_is_talk(text):
    assert parse_approval_reply(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "批准 482913 {amount}",
        '批准 482913 {"amount": NaN}',
        '拒绝 482913 {"a": 1}',
        '批准 482913 {"word": "x"',
        '批准 482913 {"word": "x"} 谢谢',
        '批准482913 "word": "x"}',
        "批准 482913 ｛“word”：“x”｝",
        '批准 482913 {"word": "' + "x" * 10_000,
    ],
)
def test_arguments_that_cannot_be_read_decide_nothing(text):
    word = parse_approval_reply(text)
    assert word is not None
    assert word.problem
    assert word.arguments is None


@pytest.mark.parametrize(
    "text",
    ["批准 482913" + " " * 200_000 + "x", "[@" * 100_000, " " * 200_000 + "批", "[@1] " * 40_000],
)
def test_long_talk_is_told_from_a_word_at_once(text):
    assert parse_approval_reply(text) is None
