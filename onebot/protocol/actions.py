"""Actions and their responses: requests to a client, and the results that it reports.

Rules: https://github.com/botuniverse/onebot-11/blob/master/communication/ws.md, and
what clients make of them (NapCat fails with retcode 1200, go-cqhttp with 100,
Lagrange with QQ's own code and no words at all).

What can go wrong between this server and a OneBot client.

::

    OneBotError
    ├── NotConnected     nothing was written; trying again is safe
    ├── FrameTooLarge    nothing was written; trying again is of no use
    ├── ActionTimeout    written, and no answer came in time
    └── ConnectionLost   written, and the socket ended before the answer

``may_have_arrived`` is the policy: where it is true the outcome of a send is
unknown, and it is never repeated blindly, for a reply said twice is worse than
one marked as uncertain.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agent.domain.types import ChatKind
from onebot.protocol.segments import (
    Base64File,
    Segment,
    id_number,
    parse_id,
    parse_message_id,
    value_text,
)
from tools.text.storable import make_storable


class OneBotError(Exception):
    """Any failure to have an action carried out; raised through its subclasses only."""

    may_have_arrived: ClassVar[bool] = False


class NotConnected(OneBotError):  # noqa: N818 - the word says what happened
    """The account has no socket for actions here. The message was not written anywhere and may be
    sent later."""


class FrameTooLarge(OneBotError):  # noqa: N818 - the word says what happened
    """The client would close its connection over the frame. Nothing was written."""


class ActionTimeout(OneBotError):  # noqa: N818 - the word says what happened
    """The client did not answer in time. The message may have been sent, and its answer may still
    come."""

    may_have_arrived = True


class ConnectionLost(OneBotError):  # noqa: N818 - the word says what happened
    """The socket ended between write and answer.

    The message may have been sent. Clients finish what they were doing, and the
    answer comes on their next socket, found by its echo.
    """

    may_have_arrived = True


STATUS_WORDS = ("ok", "async", "failed")
NO_RETCODE = -1
NAPCAT_TIMEOUT = "Timeout: NTEvent"
_QQ_RESULT = re.compile(r"\bresult\W{1,6}?(-?\d{1,9})")
#: Of NapCat, LLBot and go-cqhttp, and of Lagrange.
_UNSUPPORTED = (1404, 404)


@dataclass(frozen=True, slots=True)
class ActionResponse:
    """A client's answer to one action."""

    status: str
    retcode: int
    data: object
    echo: str | None
    """The echo of the action it answers; None when it can be none of ours, which are strings."""
    error_text: str
    """The failure in the client's words, "" for a success."""

    @property
    def is_success(self) -> bool:
        return _succeeded(self.status, self.retcode)

    @property
    def message_id(self) -> str:
        """The id of the message that was sent, "" when the client knows none."""
        return parse_message_id(self.data.get("message_id")) if isinstance(self.data, dict) else ""

    @property
    def file(self) -> str:
        """Where a client has put a file that it was asked to download, "" if it has not."""
        return (
            value_text(self.data.get("file"))
            if self.is_success and isinstance(self.data, dict)
            else ""
        )

    @property
    def is_uncertain(self) -> bool:
        """Whether this failure only says that QQ did not confirm in time, so that the message may
        be there.

        NapCat reports ``Timeout: NTEvent … EventRet: {"result": 0}`` or an empty
        EventRet, also for messages that were delivered (NapCatQQ#932). Any other
        result is QQ's refusal: muted, removed from the group.
        """
        if self.is_success or NAPCAT_TIMEOUT not in self.error_text:
            return False
        return self.qq_result in (None, 0)

    @property
    def is_unsupported(self) -> bool:
        """Whether the client does not know the action."""
        return not self.is_success and self.retcode in _UNSUPPORTED

    @property
    def qq_result(self) -> int | None:
        """QQ's own result, where NapCat words it."""
        found = _QQ_RESULT.search(self.error_text)
        return int(found[1]) if found else None


def parse_response(frame: Mapping[str, object]) -> ActionResponse:
    """Any frame that is no event, as a response. Never raises for what ``frame`` holds.

    Without a readable retcode, the status alone decides.
    """
    status = value_text(frame.get("status"))
    retcode = _retcode(frame.get("retcode"), status)
    echo = frame.get("echo")
    return ActionResponse(
        status=status,
        retcode=retcode,
        data=frame.get("data"),
        echo=echo if isinstance(echo, str) else None,
        error_text="" if _succeeded(status, retcode) else _error_text(frame, status, retcode),
    )


def send_action(
    kind: ChatKind, peer_id: str, segments: list[Segment], temp_group_id: str = ""
) -> tuple[str, dict[str, object]]:
    """Name and parameters of the action that sends ``segments`` to a group or a person.

    ``temp_group_id`` is the group through which a person who is no friend is reached.
    """
    if kind == "group":
        return "send_group_msg", {"group_id": id_number(peer_id), "message": segments}
    params: dict[str, object] = {"user_id": id_number(peer_id), "message": segments}
    if temp_group_id:
        params["group_id"] = id_number(temp_group_id)
    return "send_private_msg", params


def upload_action(
    kind: ChatKind, peer_id: str, file: str | Base64File, name: str
) -> tuple[str, dict[str, object]]:
    """Name and parameters of the action that puts a file into a group or gives it to a person.

    ``file`` is Base64 or a path on the client's machine; go-cqhttp and Lagrange take
    paths only, and none with ``file://`` before it.
    """
    if kind == "group":
        return "upload_group_file", {"group_id": id_number(peer_id), "file": file, "name": name}
    return "upload_private_file", {"user_id": id_number(peer_id), "file": file, "name": name}


def forward_nodes(account: str, name: str, messages: Iterable[list[Segment]]) -> list[Segment]:
    """``messages`` as the nodes of a merged forward, said by ``account`` under ``name``; with the
    keys of every client."""
    speaker = {"user_id": account, "nickname": name, "uin": account, "name": name}
    return [{"type": "node", "data": {**speaker, "content": said}} for said in messages]


def is_forward(segments: Sequence[Segment]) -> bool:
    """Whether ``segments`` are a merged forward: nodes stand among themselves only."""
    return bool(segments) and segments[0]["type"] == "node"


def forward_action(
    kind: ChatKind, peer_id: str, nodes: Sequence[Segment]
) -> tuple[str, dict[str, object]]:
    """Name and parameters of the action that sends ``nodes`` as one merged forward."""
    if kind == "group":
        return "send_group_forward_msg", {"group_id": id_number(peer_id), "messages": nodes}
    return "send_private_forward_msg", {"user_id": id_number(peer_id), "messages": nodes}


def download_action(address: str) -> tuple[str, dict[str, object]]:
    """Name and parameters of the action by which a client loads a web address into a file of its
    own."""
    return "download_file", {"url": address, "thread_count": 1}


def encode_action(action: str, params: Mapping[str, object], echo: str) -> str:
    """The frame as strict compact JSON text that is always valid UTF-8; files in it as
    ``base64://…``.

    Raises ValueError for NaN and Infinity and TypeError for what JSON cannot say:
    faults of the caller, for nothing a client sends gets here.
    """
    frame = {"action": action, "params": params, "echo": echo}
    mark, files = uuid.uuid4().hex, list[Base64File]()

    def keep_mark(value: object) -> str:
        if not isinstance(value, Base64File):
            raise TypeError(f"{type(value).__name__} is not JSON")
        files.append(value)
        return f"base64://{mark}"

    text = json.dumps(
        frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=keep_mark
    )
    text = str(make_storable(text))
    return _filled_in(text.split(mark), files) if files else text


def _filled_in(texts: Sequence[str], files: Sequence[Base64File]) -> str:
    """``texts`` with the contents of ``files`` between them."""
    pieces = [texts[0]]
    for file, text in zip(files, texts[1:], strict=True):
        pieces += [*file.pieces, text]
    return "".join(pieces)


def _succeeded(status: str, retcode: int) -> bool:
    return retcode in (0, 1) and status in ("ok", "async", "")


def _retcode(value: object, status: str) -> int:
    text = parse_id(value)
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    return 0 if not text and status in ("ok", "async") else NO_RETCODE


def _error_text(frame: Mapping[str, object], status: str, retcode: int) -> str:
    texts = (value_text(frame.get(key)).strip() for key in ("wording", "message", "msg"))
    said = next((text for text in texts if text), "" if status in STATUS_WORDS else status.strip())
    return said or f"retcode {retcode}"
