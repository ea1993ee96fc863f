"""Receipts of erasures in words."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from agent.models import ErasureReceipt

#: What a receipt counts, in words.
GONE: dict[str, Any] = {
    "messages": _("messages, with the answers to them"),
    "runs": _("runs"),
    "requests": _("model calls of other runs that held words of the person"),
    "tool_calls": _("arguments and results of tool calls"),
    "media": _("pictures, voice and files"),
    "descriptions": _("descriptions of media"),
    "quotes": _("quoted and forwarded words in messages of others"),
    "names": _("names in messages that mention the person"),
    "summaries": _("summaries of chats"),
    "notes": _("memory notes"),
    "sums": _("sums of what the person cost"),
    "chats": _("private chats"),
    "events": _("events of clients"),
}
KEPT: dict[str, Any] = {
    "unsettled": _("messages that are being answered: erase once more when they are done"),
    "persona_choices": _("choices of a persona for this person, which operators made"),
}


def describe_receipt(receipt: ErasureReceipt) -> dict[str, Any]:
    """``gone`` and ``stayed``: pairs of words and number."""
    gone = [(GONE.get(kind, kind), count) for kind, count in receipt.counts.items() if count]
    stayed = [(KEPT.get(kind, kind), count) for kind, count in receipt.kept.items()]
    return {"gone": gone, "stayed": stayed, "is_finished": receipt.finished_at is not None}
