"""The marks by which an answer is matched to the message it answers.

The user's text carries directives, which the fake model obeys::

    [[n=NONCE]]     names the message
    [[s=SCRIPT]]    plain (default): a text. send: a send_message call, then the text.
                    weather: a get_weather call, then the text. look: a call of a tool of the
                    benchmark's own; looks: six of them at once

and what the model says, in a text or through ``send_message``, carries
``[[r=NONCE:PART:T_IN:T_OUT]]``: the part is ``t`` for what a tool sends and ``f``
for the final text; T_IN and T_OUT are monotonic microseconds, the moments the
request was read and the answer written (0 where there is nothing to time).
"""

import re
import time
from dataclasses import dataclass

_NONCE = re.compile(r"\[\[n=([0-9A-Za-z_.-]+)\]\]")
_SCRIPT = re.compile(r"\[\[s=([a-z]+)\]\]")
_MARK = re.compile(rb"\[\[r=([0-9A-Za-z_.-]+):([a-z]):(\d+):(\d+)\]\]")


@dataclass(frozen=True, slots=True)
class Mark:
    nonce: str
    part: str
    model_in_us: int
    model_out_us: int


def now_us() -> int:
    return time.monotonic_ns() // 1000


def directives(nonce: str, script: str) -> str:
    return f"[[n={nonce}]]" + (f"[[s={script}]]" if script != "plain" else "")


def read_directives(text: str) -> tuple[str, str]:
    """``(nonce, script)``; the nonce is "" in a text that names none."""
    nonce, script = _NONCE.search(text), _SCRIPT.search(text)
    return nonce[1] if nonce else "", script[1] if script else "plain"


def mark(nonce: str, part: str, model_in_us: int = 0, model_out_us: int = 0) -> str:
    return f"[[r={nonce}:{part}:{model_in_us}:{model_out_us}]]"


def read_mark(payload: bytes) -> Mark | None:
    found = _MARK.search(payload)
    return (
        Mark(found[1].decode(), found[2].decode(), int(found[3]), int(found[4])) if found else None
    )
