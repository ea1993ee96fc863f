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
TO_OWNERS = (
    "今天的 token 额度（TOKENS_PER_DAY = {limit:,}）已经用完：午夜之前只回答主人的消息。"
    "可以调高这项设置，或者设为 0 取消限制。"
)


def notice_text(detail: str, words: str, language: str = "") -> str:
    """The sentence for ``detail``, which may be the sentence itself, in the language of
    :func:`agent.domain.errors.choose_language`."""
    if detail not in NOTICES:  # the note to an owner
        return detail
    chinese, english = NOTICES[detail]
    return chinese if choose_language(words, language).startswith("zh") else english
