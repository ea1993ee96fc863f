"""The polite one-sentence notice to a chat that is not answered for a while. Pure but for the
settings.

The keys are the texts on record, as the admin shows them.
"""

from typing import NamedTuple

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext, gettext_noop

from agent.domain.budgets import BudgetAction, Shortage
from agent.domain.errors import pick_sentence
from agent.domain.states import ToolCallState

PERSON_MINUTE = gettext_noop("This person has had as many answers as there are in a minute.")
PERSON_DAY = gettext_noop("This person has had as many answers as there are in a day.")
CHAT_MINUTE = gettext_noop("This chat has had as many answers as there are in a minute.")
CHAT_DAY = gettext_noop("This chat has had as many answers as there are in a day.")
TOKENS = gettext_noop("TOKENS_PER_DAY are used up; only owners are answered until midnight.")
LOOP = gettext_noop(
    "Ten exchanges with this sender within thirty seconds: "
    "nothing is said to it here for five minutes."
)

#: In Chinese and in English.
NOTICES = {
    PERSON_MINUTE: (
        "你发得有点快，我先歇一会儿，请一分钟后再找我。",
        "That was a lot at once. Please try again in a minute.",
    ),
    PERSON_DAY: (
        "今天能回答你的次数已经用完了，请明天再来。",
        "You have had all my answers for today. Please come back tomorrow.",
    ),
    CHAT_MINUTE: (
        "这里的消息有点多，我先歇一会儿，请一分钟后再找我。",
        "There is a lot going on here. Please try again in a minute.",
    ),
    CHAT_DAY: (
        "今天这里的回答次数已经用完了，请明天再来。",
        "This chat has had all its answers for today. Please come back tomorrow.",
    ),
    TOKENS: (
        "今天的回答额度已经用完了，请明天再来。",
        "I have no answers left for today. Please come back tomorrow.",
    ),
    LOOP: (
        "我们聊得太快了，我先歇五分钟，请稍后再找我。",
        "That was very fast. I am taking a break of five minutes.",
    ),
}
#: Percent of a budget from which on it allows no further call.
ALL = 100
#: What a chat is told that a budget keeps from being answered, in Chinese and in English: where
#: nothing is left of it, where too little is, and where others are just using the rest.
NOTHING_LEFT = (
    "我的额度暂时用完了，请过些时候再来。",
    "I have used up what I may spend for now. Please come back later.",
)
TOO_LITTLE_LEFT = (
    "我的额度只剩 {left}，不够再回答一次（一次最多可能用 {needed}），请过些时候再来。",
    "I have {left} left to spend, and an answer may take {needed}. Please come back later.",
)
IN_USE = (
    "现在同时找我的人太多，剩下的额度正被占用，请过一会儿再来。",
    "Too many are asking me at once for what I may still spend. Please try again in a while.",
)


def shortage_sentence(shortage: Shortage, words: str, language: str = "") -> str:
    """What a chat is told that is not answered because of a budget, in the language of
    :func:`agent.domain.errors.choose_language`."""
    texts = TOO_LITTLE_LEFT if shortage.needed else IN_USE if shortage.left else NOTHING_LEFT
    text = pick_sentence(texts, words, language)
    return text.format(**shortage._asdict())


#: What a chat is told of a call where no model may be asked to tell it, in Chinese and in English:
#: by how the call ended.
SUCCEEDED = (
    "{tool} 完成了。我的额度不够，不能用自己的话说，结果是：\n{result}",
    "{tool} is done. I may not spend enough to tell it in my own words; the result:\n{result}",
)
UNDER_WAY = ("{tool} 仍在执行：{result}", "{tool} is still running: {result}")
NOT_SUCCEEDED = ("{tool} 没有成功：\n{result}", "{tool} did not succeed:\n{result}")
#: Characters of a result that are told so.
RESULT_CHARS = 1_000


class CallNews(NamedTuple):
    """How a call of a tool ended, with its result as the model would read it, and the message that
    it was made for."""

    tool: str
    state: ToolCallState
    result: str
    asked: str


def outcome_sentence(call: CallNews, language: str = "") -> str:
    """The outcome of a call, told without a model in the language of
    :func:`agent.domain.errors.choose_language`."""
    texts = NOT_SUCCEEDED
    if call.state == ToolCallState.SUCCEEDED:
        texts = SUCCEEDED
    elif call.state in (ToolCallState.RUNNING, ToolCallState.PENDING):
        texts = UNDER_WAY
    text = pick_sentence(texts, call.asked, language)
    result = call.result.strip()
    if len(result) > RESULT_CHARS:
        result = f"{result[:RESULT_CHARS]}…"
    return text.format(tool=call.tool, result=result or "–")


class BudgetNews(NamedTuple):
    """What owners are told of a budget: whose it is, in words, what is spent of it, what happens at
    its end, and its ``shortage`` where it has turned somebody away."""

    name: str
    whom: str
    percent: int
    spent: str
    limit: str
    then: BudgetAction
    shortage: Shortage | None = None
    environment: str = ""


def budget_note(news: BudgetNews) -> str:
    """What owners are told of a budget, in LANGUAGE_CODE."""
    with translation.override(settings.LANGUAGE_CODE):
        words = news._asdict() | {"then": news.then.label}
        if news.shortage is not None and news.shortage.left:
            words["shortage"] = news.shortage.words
            text = gettext(
                "The budget “%(name)s” (%(whom)s) turned somebody away: %(shortage)s "
                "(%(spent)s of %(limit)s are used). From now on: %(then)s. "
                "It can be changed in the admin, under “Budgets”."
            )
            if not news.shortage.needed:
                text = gettext(
                    "The budget “%(name)s” (%(whom)s) turned somebody away for a moment: "
                    "%(shortage)s (%(spent)s of %(limit)s are used)."
                )
        elif news.percent < ALL:
            text = gettext(
                "%(percent)d%% of the budget “%(name)s” (%(whom)s) are used: "
                "%(spent)s of %(limit)s."
            )
        else:
            text = gettext(
                "The budget “%(name)s” (%(whom)s) is used up: %(spent)s of %(limit)s. From now "
                "on: %(then)s. It can be changed in the admin, under “Budgets”."
            )
        if news.environment and news.percent >= ALL:
            text = gettext(
                "The budget “%(name)s” (%(whom)s) is used up: %(spent)s of %(limit)s. Until "
                "midnight: %(then)s. It can be raised in .env; 0 is no limit."
            )
        return text % words


def notice_text(detail: str, words: str, language: str = "") -> str:
    """The sentence for ``detail``, which may be the sentence itself, in the language of
    :func:`agent.domain.errors.choose_language`."""
    if detail not in NOTICES:  # the note to an owner
        return detail
    return pick_sentence(NOTICES[detail], words, language)
