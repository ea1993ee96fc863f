"""What becomes of an event in a chat, and of a message that says a keyword. Pure.

A rule as it was when it fired stands in the message that it made, or that said its keyword, so that
what is done later is what was decided then.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _, pgettext_lazy

from agent.domain.answer_parts import may_be_person
from agent.domain.errors import pick_sentence
from agent.domain.events import ChatNotice, EventKind
from agent.domain.reminders import pick_language
from agent.domain.types import ChatAddress
from tools.text.fences import FenceKind, fence_values

KEYWORD = "keyword"
#: What rows can be for, each with its words.
KINDS = (
    *((kind.value, kind.label) for kind in EventKind if kind not in ("name", "friend", "account")),
    (KEYWORD, _("keyword")),
)
#: Events of which those that come at once become one message.
GATHERED = (EventKind.JOIN, EventKind.LEAVE)
#: People whom one message is for, by their ids, and by name; of the others there is a number.
MOST_PEOPLE, MOST_NAMED = 500, 20
MOST_TEXT, MOST_ARGUMENTS = 5_000, 10_000
#: What a model is asked to do where the row has no words, and what the record calls an event.
ASKED = "请对这件事说点什么；没有必要就什么也不说。"
CALLED: dict[str, str] = {
    KEYWORD: "关键词",
    EventKind.POKE: "戳一戳",
    EventKind.JOIN: "入群",
    EventKind.LEAVE: "退群",
    EventKind.RECALL: "撤回",
    EventKind.MUTE: "禁言",
    EventKind.ADMIN: "管理员",
    EventKind.TITLE: "头衔",
    EventKind.CARD: "群名片",
    EventKind.UPLOAD: "群文件",
    EventKind.ESSENCE: "精华",
    EventKind.HONOR: "群荣誉",
    EventKind.REACTION: "表情回应",
}
BETWEEN = ("、", ", ")
AND_OTHERS = (" 等 {count} 人", " and others, {count} in all")
_PLACEHOLDER = re.compile(r"\{(name|group|operator|count)\}")
#: The entry of ``Message.raw``.
_ON_RECORD = "event_rule"


class EventAction(TextChoices):
    NOTHING = "nothing", pgettext_lazy("what is done", "nothing")
    SAY = "say", _("say the text")
    PICTURE = "picture", _("send a picture")
    STICKER = "sticker", _("send a sticker")
    MODEL = "model", _("have the model answer")
    TOOL = "tool", _("call a tool")


#: What an action cannot do without.
NEEDED = {"say": "text", "picture": "file", "sticker": "file", "tool": "tool"}
#: What is empty, and may be said by a broader row.
_UNSAID: tuple[Any, ...] = ("", None, {})


class KeywordMatch(TextChoices):
    WORD = "word", _("the whole message is one of the words")
    PREFIX = "prefix", _("it begins with one of them")
    PATTERN = "pattern", _("one of the regular expressions is found in it")


@dataclass(frozen=True, slots=True)
class FiredRule:
    """A rule with what it fired for: the ``people`` whom the event is about, and ``count`` of
    them. ``said_by`` has the names of the rows that say what its own leaves empty, by field."""

    pk: int
    name: str
    kind: str
    action: str
    text: str = ""
    file: str = ""
    mention: bool | None = None
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict, hash=False)
    people: tuple[str, ...] = ()
    count: int = 1
    operator: str = ""
    change: str = ""
    words: str = ""
    message_id: str = ""
    said_by: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def lacks(self) -> str:
        """The field without which it cannot do what it is to do, where no row says that."""
        needed = NEEDED.get(self.action, "")
        return needed if needed and not getattr(self, needed).strip() else ""

    @property
    def asks_model(self) -> bool:
        return self.action == EventAction.MODEL

    @property
    def asked(self) -> str:
        """What the message on record says: to a model what it is to do."""
        said = (self.text or ASKED) if self.asks_model else ""
        return f"[事件:{CALLED[self.kind]}] {said}".rstrip()

    @property
    def named(self) -> tuple[str, ...]:
        """Those whose names are said."""
        return self.people[:MOST_NAMED]

    def mentioned(self, group: ChatAddress) -> list[str]:
        """Whom the message mentions: people alone, with ids like that of the group, and not the
        account itself."""
        people = self.named if self.mention else ()
        others = (one for one in people if one != group.account)
        return [one for one in others if may_be_person(one, group.peer_id)]

    def to_raw(self) -> dict[str, Any]:
        """As the message keeps it."""
        return {_ON_RECORD: asdict(self)}

    def fill(self, names: Mapping[str, str], group: str) -> str:
        """The text with its placeholders filled, once: what stands in their places is not read
        again."""
        language = pick_language(_PLACEHOLDER.sub("", self.text))
        between = pick_sentence(BETWEEN, "", language)
        shown = between.join(names.get(one) or one for one in self.named)
        if shown and self.count > len(self.named):
            shown += pick_sentence(AND_OTHERS, "", language).format(count=self.count)
        values = {
            "name": shown,
            "group": group,
            "operator": names.get(self.operator) or self.operator,
            "count": str(self.count),
        }
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)

    def fence(self, names: Mapping[str, str]) -> str:
        """The event for a model, fenced."""
        people = [{"user_id": one, "name": names.get(one, "")} for one in self.named]
        told = {"event": self.kind, "change": self.change, "people": people, "count": self.count}
        others = {"operator": self.operator, "words": self.words, "message_id": self.message_id}
        told |= {name: value for name, value in others.items() if value}
        return fence_values(FenceKind.EVENT, [told])


def combine_rules(rules: Sequence[FiredRule]) -> FiredRule:
    """The first of ``rules`` for one kind, which come the most particular first, with what it
    leaves empty as those behind it say."""
    whole = list[FiredRule]()
    for rule in reversed(rules):
        whole.insert(0, _fill(rule, whole))
    return whole[0]


def _fill(rule: FiredRule, behind: Sequence[FiredRule]) -> FiredRule:
    """Where ``rule`` says itself what is done, it takes the mention alone, and what that cannot do
    without, of one that does the same: so a text for a model is never said."""
    if not behind:
        return rule
    sources = dict.fromkeys(("action", "text", "file", "tool", "mention"), behind[0])
    if rule.action:
        alike = [one for one in behind if one.action == rule.action]
        needed = NEEDED.get(rule.action)
        sources = {"mention": behind[0]} | ({needed: alike[0]} if needed and alike else {})
    if "tool" in sources and not rule.tool:
        sources["arguments"] = sources["tool"]
    said = {name: getattr(one, name) for name, one in sources.items()}
    taken = {
        name: value
        for name, value in said.items()
        if getattr(rule, name) in _UNSAID and value not in _UNSAID
    }
    said_by = {name: sources[name].said_by.get(name, sources[name].name) for name in taken}
    return replace(rule, **taken, said_by=said_by)


def read_fired_rule(raw: Mapping[str, Any] | None) -> FiredRule | None:
    """The rule that a message keeps; None for every other message."""
    kept = (raw or {}).get(_ON_RECORD)
    if not isinstance(kept, dict):
        return None
    known = {one.name: kept[one.name] for one in fields(FiredRule) if one.name in kept}
    return FiredRule(**known | {"people": tuple(kept.get("people", ()))})


def find_cause(notice: ChatNotice) -> str:
    """Who caused it, for whose limits it counts; "" where nobody knows. Whoever joins has done so
    himself, also where somebody let him in."""
    is_join = notice.kind == EventKind.JOIN
    return notice.user_id if is_join else notice.operator_id or notice.user_id


def is_left_alone(notice: ChatNotice, account: str) -> bool:
    """Whether no rule is for it: the account itself did it, or it was done to it, and what it says
    of that could go on for ever; somebody else was poked; or nobody is said to have come or
    gone."""
    is_of_others = notice.kind == EventKind.POKE and notice.target_id != account
    is_of_nobody = notice.kind in GATHERED and not notice.user_id
    return is_of_others or is_of_nobody or account in (notice.user_id, find_cause(notice))


def unite(people: Sequence[str], count: int, more: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """``people`` and ``more``, each once, and how many there are in all; of more than
    :data:`MOST_PEOPLE` the number alone is known."""
    united = tuple(dict.fromkeys((*people, *more)))
    count += len(united) - len(people)
    return united[:MOST_PEOPLE], count
