"""Where a row counts that is for some chats: an account, a kind of chat, chats."""

import math
from collections.abc import Iterator

from django.db import models
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.states import SessionKind
from tools.models.tool_config import check_ids, parse_ids

SCOPE = ("account", "chat_kind", "chats")


class Scoped(models.Model):
    """A row for the chats that its scope names; of several the most particular counts
    (:func:`rank_row`)."""

    account = models.CharField(
        _("account"), max_length=64, blank=True, default="", help_text=_("Empty: every account.")
    )
    chat_kind = models.CharField(
        _("kind of chat"),
        max_length=16,
        choices=SessionKind.choices,
        blank=True,
        default="",
        help_text=_("Empty: groups and private chats."),
    )
    chats = models.TextField(
        _("chats"),
        blank=True,
        default="",
        help_text=_(
            "One a line: group:123456 or private:20002. Empty: all chats of the account and kind."
        ),
    )

    class Meta:
        abstract = True

    @property
    def chat_keys(self) -> tuple[str, ...]:
        """The chats that it lists, as ``kind:peer``."""
        words = parse_ids(self.chats.replace("：", ":"))
        return tuple(dict.fromkeys(word.removeprefix("onebot:") for word in words))

    def covers(self, other: "Scoped") -> bool:
        """Whether it is for all chats of ``other``."""
        keys = set(other.chat_keys)
        kinds = {other.chat_kind} if other.chat_kind else {key.partition(":")[0] for key in keys}
        return (
            self.account in ("", other.account)
            and (not self.chat_kind or kinds == {self.chat_kind})
            and (not self.chats or (bool(keys) and keys <= set(self.chat_keys)))
        )

    def scope_problems(self) -> dict[str, list[str]]:
        """What is wrong with it, by field."""
        return {"account": check_ids(self.account), "chats": list(self._chat_problems())}

    def _chat_problems(self) -> Iterator[str]:
        for chat in self.chat_keys:
            kind, _colon, peer = chat.partition(":")
            told = {"chat": chat[:64]}
            if not peer or kind not in SessionKind.values or check_ids(peer):
                yield gettext("“%(chat)s” is neither group:NUMBER nor private:NUMBER.") % told
            elif self.chat_kind not in ("", kind):
                yield gettext("“%(chat)s” is not of the kind that is chosen above.") % told


def rank_row(row: Scoped) -> tuple[bool, int, bool, bool, float]:
    """By what rows are sorted: the most particular is the least."""
    count = len(row.chat_keys)
    return not count, count, not row.account, not row.chat_kind, row.pk or math.inf
