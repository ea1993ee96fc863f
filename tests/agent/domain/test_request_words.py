"""What is said of requests by those who ask, by owners and by clients."""

import pytest

from agent.domain.requests import (
    DECIDED_BEFORE,
    RequestReply,
    parse_request_reply as parse,
    read_answer,
)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("批准", RequestReply(True)),
        ("[回复: x]同意。", RequestReply(True)),
        ("approve #12", RequestReply(True, "", 12)),
        ("批准＃12！", RequestReply(True, "", 12)),
        ("拒绝", RequestReply(False)),
        ("拒绝 请先看群规", RequestReply(False, "请先看群规")),
        ("拒绝，广告", RequestReply(False, "广告")),
        ("refuse #7 no ads\nplease", RequestReply(False, "no ads\nplease", 7)),
    ],
)
def test_a_word_of_an_owner(text, reply):
    assert parse(text) == reply


@pytest.mark.parametrize(
    "text", ["", "批准了吗", "批准 他", "拒绝了", "approved it", "不批准", "refused", "批准 #x"]
)
def test_other_words_decide_nothing(text):
    assert parse(text) is None


def test_a_comment_made_to_be_read_slowly_is_read_at_once():
    words = "问题：" + "\n" * 100_000
    assert read_answer(words) == words


@pytest.mark.parametrize(
    ("words", "is_decided"),
    [
        ("FLAG_HAS_BEEN_CHECKED", True),
        ("该请求已被处理", True),
        ("消息已被处理", True),
        ("已被其他管理员处理", True),
        ("请求已处理", True),
        ("请勿重复处理", True),
        ("加群申请已过期", True),
        ("This request has already been handled", True),
        ("request already approved", True),
        ("flag expired", True),
        ("No such request", False),
        ("FLAG不存在", False),
        ("处理失败", False),
        ("无法处理该请求", False),
        ("群不存在或已解散", False),
        ("账号已被冻结", False),
        ("cannot be processed", False),
        ("retcode 120", False),
    ],
)
def test_words_for_what_was_decided_elsewhere(words, is_decided):
    assert (DECIDED_BEFORE.search(words) is not None) == is_decided
