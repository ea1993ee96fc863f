"""Requests as clients report them."""

from agent.domain.requests import MOST_COMMENT, Flag, IncomingRequest, RequestKind
from onebot.protocol.events import OtherEvent, parse_time
from onebot.protocol.frames import CUT_END
from onebot.protocol.segments import parse_id, value_text

#: Bytes of a flag; a longer one is none that a client could have meant.
MOST_FLAG = 2**16
#: No level of QQ comes near.
MOST_LEVEL = 10_000
_KINDS = {
    ("friend", ""): RequestKind.FRIEND,
    ("group", "add"): RequestKind.JOIN,
    ("group", "invite"): RequestKind.INVITE,
}


def read_request(event: OtherEvent) -> IncomingRequest | None:
    """The request that ``event`` reports; None for another event, or one that does not say who and
    where."""
    raw, is_group = event.raw, event.detail_type == "group"
    kind = _KINDS.get((event.detail_type, event.sub_type if is_group else ""))
    user_id, group_id, *inviters = (
        parse_id(raw.get(name)) for name in ("user_id", "group_id", "invitor_id", "inviter_id")
    )
    is_somewhere = not is_group or group_id not in ("", "0")
    if event.post_type != "request" or kind is None or not user_id or not is_somewhere:
        return None
    return IncomingRequest(
        account=event.self_id,
        kind=kind,
        user_id=user_id,
        group_id=group_id if is_group else "",
        comment=value_text(raw.get("comment")).strip()[:MOST_COMMENT],
        flag=_read_flag(event.flag),
        inviter_id=next((one for one in inviters if one not in ("", "0")), ""),
        level=_read_level(raw.get("level")) or _read_level(raw.get("qq_level")),
        happened_at=parse_time(raw.get("time")),
    )


def _read_flag(value: object) -> Flag | None:
    """``value`` where it can go back as it came."""
    if isinstance(value, str):
        is_whole = 0 < len(value.encode()) <= MOST_FLAG and not value.endswith(CUT_END)
        return value if is_whole else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _read_level(value: object) -> int | None:
    """A level, None where the client does not know it, for which some say 0."""
    digits = parse_id(value)
    level = int(digits) if digits.isascii() and digits.isdigit() else 0
    return level if 0 < level <= MOST_LEVEL else None
