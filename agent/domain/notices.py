"""The polite one-sentence notice to a chat that is not answered for a while. Pure but for the
settings.

The keys are the texts on record, as the admin shows them.
"""

from django.utils.translation import gettext_noop

from agent.domain.errors import choose_language

PERSON_MINUTE = gettext_noop("This person has had as many answers as there are in a minute.")
PERSON_DAY = gettext_noop("This person has had as many answers as there are in a day.")
CHAT_MINUTE = gettext_noop("This chat has had as many answers as there are in a minute.")
CHAT_DAY = gettext_noop("This chat has had as many answers as there are in a day.")
TOKENS = gettext_noop("TOKENS_PER_DAY are used up; only owners are answered until midnight.")
BUDGET = gettext_noop("A budget is used up.")
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
    BUDGET: (
        "我的额度暂时用完了，请过些时候再来。",
        "I have used up what I may spend for now. Please come back later.",
    ),
    LOOP: (
        "我们聊得太快了，我先歇五分钟，请稍后再找我。",
        "That was very fast. I am taking a break of five minutes.",
    ),
}
TO_OWNERS = (
    "今天的 token 额度（TOKENS_PER_DAY = {limit:,}）已经用完：午夜之前只回答主人的消息。"
    "可以调高这项设置，或者设为 0 取消限制。"
)
#: Percent of a budget that is used up.
ALL = 100
#: What owners are told of a budget, in Chinese and in English; by whether it is used up.
BUDGET_TO_OWNERS = {
    False: (
        "预算“{name}”（{whom}）已经用了 {percent}%：{spent} / {limit}。",
        "{percent}% of the budget “{name}” ({whom}) are used: {spent} of {limit}.",
    ),
    True: (
        "预算“{name}”（{whom}）已经用完：{spent} / {limit}。可以在管理页面的“预算”里调整。",
        "The budget “{name}” ({whom}) is used up: {spent} of {limit}. "
        "It can be changed in the admin, under Budgets.",
    ),
}


def budget_note(name: str, whom: str, percent: int, spent: str, limit: str) -> str:
    """What owners are told of a budget, in LANGUAGE_CODE."""
    chinese, english = BUDGET_TO_OWNERS[percent >= ALL]
    text = chinese if choose_language("").startswith("zh") else english
    return text.format(name=name, whom=whom, percent=percent, spent=spent, limit=limit)


def notice_text(detail: str, words: str, language: str = "") -> str:
    """The sentence for ``detail``, which may be the sentence itself, in the language of
    :func:`agent.domain.errors.choose_language`."""
    if detail not in NOTICES:  # the note to an owner
        return detail
    chinese, english = NOTICES[detail]
    return chinese if choose_language(words, language).startswith("zh") else english
