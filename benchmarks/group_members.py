"""The people of a group of 500 and what they say in a day: seeded, so that a day can be played
again. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MEMBERS = 500
BOT, GROUP, OWNER = 10_001, 30_003, 20_000
BOT_NAME = "小霜"
_SURNAMES, _NAMES = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨", "伟芳娜敏静丽强磊洋艳勇军杰娟涛明"
_CHATTER = (
    "哈哈哈哈", "今天食堂的面不错", "有人打游戏吗", "作业写完了没", "下雨了记得带伞", "?", "666",
    "刚下班，累死", "周末去哪儿玩", "这个表情包我存了", "楼上说得对", "晚上吃火锅", "在看比赛，二比零",
    "[狗头]", "求个链接", "谁有昨天的笔记",
)  # fmt: skip
_QUESTIONS = (
    "明天天气怎么样", "帮我想个周末的安排", "解释一下什么是递归", "推荐一部电影", "现在几点了",
    "用表格比较一下 Python 和 Go", "写一篇很长的故事", "“内卷”用英语怎么说", "帮我查一下北京天气",
)  # fmt: skip

Segment = dict[str, Any]


def text(words: str) -> Segment:
    return {"type": "text", "data": {"text": words}}


def at(number: int) -> Segment:
    return {"type": "at", "data": {"qq": str(number)}}


def quote(message_id: int) -> Segment:
    return {"type": "reply", "data": {"id": str(message_id)}}


@dataclass(frozen=True, slots=True)
class Member:
    user_id: int
    nickname: str
    card: str
    role: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message: ``kind`` is what its author means by it."""

    kind: str
    member: Member
    message_id: int
    segments: list[Segment]
    recalled: bool = False


@dataclass
class Group:
    """The group; what it says depends on the ``seed`` and on what the bot sent."""

    seed: int
    members: list[Member] = field(default_factory=list)
    bot_messages: list[int] = field(default_factory=list)
    """The client's ids of what the bot has said."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._next_id = 5_000_000
        self._said: list[int] = []
        self.members = [self._member(number) for number in range(MEMBERS)]
        # A few say most of it.
        self._weights = [1 / (rank + 1) for rank in range(MEMBERS)]

    def _member(self, number: int) -> Member:
        name = self._random.choice(_SURNAMES) + self._random.choice(_NAMES)
        card = f"{name}{number}" if number % 3 else ""
        role = "owner" if number == 0 else "admin" if number < 6 else "member"
        return Member(OWNER + number, f"{name}_{number}", card, role)

    def talk(self, count: int) -> Iterator[Said]:
        """The next ``count`` messages; a person's bare mention or quick lines count as several."""
        kinds = {
            "chatter": 70, "mention": 8, "name": 4, "bare mention": 3, "quick lines": 3,
            "quote of the bot": 4, "quote of another": 3, "mention of another": 3,
            "forward": 1, "sticker": 4, "recalled mention": 1, "why": 1, "help": 1,
        }  # fmt: skip
        names, weights = list(kinds), list(kinds.values())
        left = count
        while left > 0:
            kind = self._random.choices(names, weights)[0]
            member = self._random.choices(self.members, self._weights)[0]
            for said in self._say(kind, member):
                left -= 1
                yield said

    def say(self, kind: str, member: Member, *segments: Segment, recalled: bool = False) -> Said:
        self._next_id += 1
        self._said.append(self._next_id)
        return Said(kind, member, self._next_id, list(segments), recalled)

    def _say(self, kind: str, member: Member) -> Iterator[Said]:
        question = text(f" {self._random.choice(_QUESTIONS)}")
        chatter = text(self._random.choice(_CHATTER))
        other = self._random.choice(self.members)
        match kind:
            case "mention" | "recalled mention":
                is_recalled = kind != "mention"
                yield self.say(kind, member, at(BOT), question, recalled=is_recalled)
            case "name":
                yield self.say(
                    kind, member, text(f"{BOT_NAME}，{question['data']['text'].strip()}")
                )
            case "bare mention":
                yield self.say(kind, member, at(BOT))
                yield self.say("words after it", member, question)
            case "quick lines":
                yield self.say(kind, member, at(BOT), text(" 我想问个事"))
                yield self.say("words after it", member, text("就是那个"))
                yield self.say("words after it", member, question)
            case "quote of the bot" if self.bot_messages:
                quoted = self._random.choice(self.bot_messages)
                yield self.say(kind, member, quote(quoted), text("什么意思"))
            case "quote of another" if self._said:
                quoted = self._random.choice(self._said)
                yield self.say(kind, member, quote(quoted), at(BOT), text(" 你怎么看"))
            case "mention of another":
                yield self.say(kind, member, at(other.user_id), chatter)
            case "forward":
                forward = {"type": "forward", "data": {"id": "7412345678901234567"}}
                yield self.say(kind, member, forward)
            case "sticker":
                face = {"type": "mface", "data": {"summary": "[摸鱼]", "emoji_id": "1"}}
                yield self.say(kind, member, face)
            case "why" if self.bot_messages:
                quoted = self._random.choice(self.bot_messages)
                yield self.say(kind, member, quote(quoted), text("/why"))
            case "help":
                yield self.say(kind, member, text("/help"))
            case _:
                yield self.say("chatter", member, chatter)
