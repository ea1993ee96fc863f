"""Acts of an account on behalf of somebody: whether they may be done, and what came of them."""

from collections.abc import Collection, Mapping
from typing import Any

from agent.domain.client_actions import (
    ACT_SECONDS,
    RANKS,
    ClientActions,
    GroupMember,
    GroupRole,
)
from agent.domain.errors import pick_sentence
from agent.domain.group_acts import (
    LEAST_ROLE,
    NO_MEMBER,
    OWN_TOO_LOW,
    OWN_UNKNOWN,
    REFUSED,
    ROLES,
    UNKNOWN,
    UNSUPPORTED,
    Asker,
    Sentence,
    judge_person,
    judge_ranks,
)
from agent.domain.types import ChatAddress

#: Characters of a client's own words.
WORDS = 200


class NotActed(Exception):  # noqa: N818 - the word says what happened
    """It was not done, or nobody can tell."""

    def __init__(
        self,
        sentence: Sentence,
        person: str = "",
        role: GroupRole = "member",
        words: str = "",
    ) -> None:
        super().__init__(sentence[1])
        self.sentence, self.person, self.role, self.words = sentence, person, role, words

    def say(self, language: str) -> str:
        """Why, in one sentence."""
        role = pick_sentence(ROLES[self.role], "", language)
        text = pick_sentence(self.sentence, "", language)
        return text.format(person=self.person, role=role, words=self.words)


async def find_own(actions: ClientActions, chat: ChatAddress, least: GroupRole) -> GroupMember:
    """The account as a member of the group. Raises :class:`NotActed` where it is less than
    ``least``."""
    own = await actions.find_member(chat, chat.account) if chat.kind == "group" else None
    if own is None or own.rank < RANKS[least]:
        raise NotActed(OWN_TOO_LOW if own else OWN_UNKNOWN, role=least)
    return own


async def check_person(
    actions: ClientActions,
    chat: ChatAddress,
    owners: Collection[str],
    asker: Asker,
    act: str,
    person: str,
) -> GroupMember:
    """Who ``person`` is in the group. Raises :class:`NotActed` where ``asker`` may not have ``act``
    done to him; words are taken back also of who has left."""
    is_recall = act == "recall_message"
    spared = () if act == "unmute_member" else owners
    by = asker.user_id if act in ("set_member_card", "set_member_title") else ""
    if fault := judge_person(person, chat.account, spared, by=by):
        raise NotActed(fault)
    own = await find_own(actions, chat, "admin" if is_recall else LEAST_ROLE[act])
    target = await actions.find_member(chat, person)
    if target is None and is_recall:
        return GroupMember(person, "member")
    if target is None:
        raise NotActed(NO_MEMBER, person)
    if fault := judge_ranks(own, target, asker):
        raise NotActed(fault, person, target.role)
    return target


async def carry_out(
    actions: ClientActions,
    chat: ChatAddress,
    action: str,
    params: Mapping[str, object],
    instead: tuple[str, Mapping[str, object]] | None = None,
    seconds: float = ACT_SECONDS,
) -> Any:
    """What the client answers. Raises :class:`NotActed`."""
    outcome = await actions.perform(chat, action, params, seconds, instead)
    if outcome.is_success:
        return outcome.data
    if outcome.is_unknown or outcome.is_unsupported:
        raise NotActed(UNKNOWN if outcome.is_unknown else UNSUPPORTED)
    raise NotActed(REFUSED, words=outcome.words[:WORDS] or f"retcode {outcome.retcode}")
