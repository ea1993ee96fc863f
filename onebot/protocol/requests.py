"""Requests as clients report them."""

from agent.domain.requests import MOST_COMMENT, Flag, IncomingRequest, RequestKind
from onebot.protocol.events import OtherEvent, parse_time
from onebot.protocol.frames import CUT_END
from onebot.protocol.segments import parse_id, value_text

#: Bytes of a flag; a longer one is none that a client could have meant.
MOST_FLAG = 2**16
#: No level of QQ comes near.
MOST_LEVEL = 10_000
_GROUP_KINDS = {"add": RequestKind.JOIN, "invite": RequestKind.INVITE}


def read_request(event: OtherEvent, self_id: str) -> IncomingRequest | None:
    """The request that ``event`` reports; None for another event, or one that does not say who and
    where."""
    if event.post_type != "request":
        return None
    raw, user_id = event.raw, parse_id(event.raw.get("user_id"))
    kind, group_id = RequestKind.FRIEND, ""
    if event.detail_type == "group" and event.sub_type in _GROUP_KINDS:
        kind, group_id = _GROUP_KINDS[event.sub_type], parse_id(raw.get("group_id"))
        if group_id in ("", "0"):
            return None
    elif event.detail_type != "friend":
        return None
    if not user_id:
        return None
    inviters = (parse_id(raw.get(name)) for name in ("invitor_id", "inviter_id"))
    return IncomingRequest(
        account=event.self_id or self_id,
        kind=kind,
        user_id=user_id,
        group_id=group_id,
        comment=value_text(raw.get("comment")).strip()[:MOST_COMMENT],
        flag=_read_flag(event.flag),
        inviter_id=next((one for one in inviters if one not in ("", "0")), ""),
        level=_read_level(raw.get("level")) or _read_level(raw.get("qq_level")),
        happened_at=parse_time(raw.get("time")),
    )


def _read_flag(value: object) -> Flag | None:
    """``value`` where it can go back as it came."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and (
        not 0 < len(value.encode()) <= MOST_FLAG or value.endswith(CUT_END)
    ):
        return None
    return value


def _read_level(value: object) -> int | None:
    """A level, None where the client does not know it, for which some say 0."""
    digits = parse_id(value)
    level = int(digits) if digits.isascii() and digits.isdigit() else 0
    return level if 0 < level <= MOST_LEVEL else None
