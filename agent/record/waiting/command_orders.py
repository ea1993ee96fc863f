"""Commands of a chat on record: what one changes and what it says are one commit, and happen
once."""

import re
from collections.abc import Callable

from agent.models import Message, Run

#: Messages whose language counts for the answer to a command.
LAST_FEW = 5
_SHOWN = re.compile(r"\[[^\]]*\]")
"""What the program writes for pictures and such, in Chinese."""


def carry_out_command(run_pk: int, carry_out: Callable[[], str]) -> str:
    """Carry out a command and keep its answer as that of its run; one that was carried out before
    a crash is only answered again. ``carry_out`` changes rows, within the transaction, and returns
    what is said of it; "" for nothing."""
    run = Run.objects.only("final_text").get(pk=run_pk)
    if not run.final_text:
        run.final_text = carry_out()
        run.save(update_fields=["final_text"])
    return run.final_text


def load_last_words(session_pk: int) -> str:
    """What people said last in a chat, as they typed it."""
    said = Message.objects.filter(session_id=session_pk, direction=Message.Direction.IN)
    texts = said.order_by("-pk").values_list("text", flat=True)[:LAST_FEW]
    return " ".join(_SHOWN.sub("", text) for text in texts)
