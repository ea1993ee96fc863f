"""How much one run may say in its chat, all ways together. Pure.

A model in a loop, or one that was talked into it, would otherwise fill a chat for as long as its
run lasts.
"""

from dataclasses import dataclass

MESSAGES = 50
"""Messages of one run. The last of them is kept for the final answer."""
CHARACTERS = 200_000
"""Characters of all of them."""
CUT = "…"
NO_MESSAGES = (
    f"本轮最多用工具发送 {MESSAGES - 1} 条消息，已经用完，这条没有发送。请直接给出最终回答。"
)
TOO_MANY_PARTS = (
    "这些内容要分成 {count} 条消息，本轮只能再用工具发送 {left} 条，没有发送。请缩短内容。"
)
NO_CHARACTERS = f"本轮最多发送 {CHARACTERS} 个字，还剩 {{left}} 个，这条没有发送。请缩短内容。"


@dataclass(slots=True)
class SendAllowance:
    """What a run has said by tools: each message that it put on record counts, also one that the
    client refused."""

    messages: int = 0
    characters: int = 0

    @property
    def left(self) -> int:
        """Characters that may still be sent."""
        return max(CHARACTERS - self.characters, 0)

    def take(self, text: str, count: int = 1) -> str:
        """Count ``text``, which a tool says in ``count`` messages; why it may not be sent where
        that is too much, and it is not counted then."""
        if self.messages >= MESSAGES - 1:
            return NO_MESSAGES
        if count > (left := MESSAGES - 1 - self.messages):
            return TOO_MANY_PARTS.format(count=count, left=left)
        if len(text) > self.left:
            return NO_CHARACTERS.format(left=self.left)
        self.messages += count
        self.characters += len(text)
        return ""

    def cut_to_fit(self, text: str) -> str:
        """A final answer, cut with a mark where it is longer than what is left."""
        return text if len(text) <= self.left else text[: max(self.left - len(CUT), 0)] + CUT
