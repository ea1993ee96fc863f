"""The language of sentences that the program says in a chat: that of the person's words."""

import re

import pytest

from agent.chat.speaking import approval_outcome_text
from agent.domain.approvals import build_approval_question, describe_origin, parse_approval_reply
from agent.domain.budgets import BudgetAction
from agent.domain.errors import HAN, build_apology, choose_language
from agent.domain.notices import BudgetNews, budget_note
from agent.record.waiting.approvals import ApprovalOutcome

ORIGIN = ("group", "30003", "Photos", "20001", "Ann")


@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("look at this [图片]", "en"),
        ("[文件:报告.docx] please", "en"),
        ("[@20001] [回复:5] hello [表情:14]", "en"),
        ("[卡片:小程序] what is it", "en"),
        ("[图片] 这是什么", "zh-hans"),
        ("this is [图片] 好", "zh-hans"),
        ("", "en"),
    ],
)
def test_what_stands_for_a_picture_makes_no_message_chinese(settings, words, language):
    settings.LANGUAGE_CODE = "en"
    assert choose_language(words) == language


def test_the_persona_comes_first_and_the_setting_last(settings):
    settings.LANGUAGE_CODE = "zh-hans"
    assert choose_language("你好", "en") == "en"
    assert choose_language("hello [图片]") == "zh-hans"
    settings.LANGUAGE_CODE = "en"
    assert build_apology("hello [图片]").startswith("Sorry")


NEWS = BudgetNews("b", "x", 100, "2 tokens", "1 tokens", BudgetAction.OWNERS, environment="B")


def test_a_question_to_owners_is_in_one_language(settings):
    arguments = {"text": "x" * 300} | {f"n{place}": place for place in range(12)}
    settings.LANGUAGE_CODE = "en"
    for told in (
        build_approval_question("pay", {"n": 1}, "482913", describe_origin(*ORIGIN)),
        build_approval_question("pay", arguments, "482913"),
        budget_note(NEWS),
        *(approval_outcome_text(outcome, "482913", "x") for outcome in ApprovalOutcome),
    ):
        assert not HAN.search(told)
    assert HAN.search(build_approval_question("pay", arguments, "482913", language="zh-hans"))
    settings.LANGUAGE_CODE = "zh-hans"
    assert HAN.search(budget_note(NEWS))
    assert not HAN.search(build_approval_question("pay", arguments, "482913", language="en"))


def test_the_words_that_an_english_question_names_decide(settings):
    settings.LANGUAGE_CODE = "en"
    named = re.findall(r"“(\w+ \d{6})”", build_approval_question("pay", {"n": 1}, "482913"))
    assert named == ["approve 482913", "refuse 482913"]
    said = [*named, "Approve ４８２９１３.", "Refuse 482913。", "批准 482913。"]
    decided = [parse_approval_reply(one) for one in said]
    assert [(one.is_approval, one.code) for one in decided if one] == [
        (is_approval, "482913") for is_approval in (True, False, True, False, True)
    ]
