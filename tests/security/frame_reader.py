"""The strict reader of requests: what is a frame, a fence or a label, by the rules that the model
is shown."""

import json
import re
import unicodedata
from typing import Any

from tests.scripted_model import Request, text_of

FRAME = re.compile(
    r'\{"frame": "⟦(?:以下是此人的话|以下是工具结果)⟧", [^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*\}'
)
FENCED = "记忆|摘要|聊天记录|消息内容|被引用的消息|转发的消息|群里的其他消息|其他工具"
FENCE = re.compile(rf"^⟦以下是({FENCED})⟧\n[^\n]+\n((?:[^\n]+\n)*)⟦以上是\1⟧$", re.MULTILINE)
WORDS = f"以下是此人的话|以下是工具结果|以[下上]是(?:{FENCED}|文件)"
LABEL_WORDS = "(?:图片|语音|文件)内容"
IMITATION = re.compile(
    rf"[⟦⟧〚〛⟬⟭]|[\[【〖](?:{WORDS}|{LABEL_WORDS}[\]】〗:])|27e[67]", re.IGNORECASE
)
#: What ends a turn for servers of local models.
TURN = re.compile(
    r"</?[|｜]?[\w▁]+[|｜]>|</?[|｜][\w▁]+[|｜]?>|\[/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS)\]"
    r"|</?(?:s|SYS|tool_call|tool_response|(?:start|end)_of_turn)>"
)
LABEL = re.compile(
    r" ?【(?:图片内容|语音内容|文件内容)】: |^【以上是文件“[^\n”]*”的内容】$", re.MULTILINE
)


def speakers(request: Request) -> list[str]:
    """Who speaks by the frames of a request, in order; fails where anything else in it looks like a
    mark."""
    return [frame["sender"]["user_id"] for frame in frames(request) if "sender" in frame]


def frames(request: Request) -> list[dict[str, Any]]:
    """The headers of all frames of a request, in order; as above."""
    found = []
    for message in request.messages:
        rest = text_of(message)
        if message["role"] == "user":
            first, _newline, below = rest.partition("\n")
            if FRAME.fullmatch(first):
                header: dict[str, Any] = json.loads(first)
                found.append(header)
                rest = below
                assert_unmarked(
                    str({key: value for key, value in header.items() if key != "frame"})
                )
        assert_unmarked(without_fences(rest))
    return found


def without_fences(text: str) -> str:
    """``text`` without the opening and the closing of its fences: their lines are JSON that holds
    no mark either."""
    for found in FENCE.finditer(text):
        for value in found[2].splitlines():
            assert found[1] == "其他工具" or json.loads(value)
    return FENCE.sub(lambda found: found[2], text)


def labels(request: Request) -> int:
    """How many labels stand in the last message of a request."""
    return len(LABEL.findall(request.last_text))


def assert_unmarked(text: str) -> None:
    """Fail where ``text`` holds what looks like a mark or the end of a turn, also to somebody who
    sees no unseen signs; true labels aside."""
    text = LABEL.sub("", text)
    plain = unicodedata.normalize("NFKC", text)
    seen = "".join(
        sign
        for sign in plain
        if not sign.isspace() and unicodedata.category(sign) not in ("Cf", "Cc", "Mn")
    )
    found = IMITATION.search(seen) or TURN.search(seen)
    assert not found, f"{found and found[0]!r} in {text!r}"
