"""What clients answer about groups, their members and files, as lines for the model. Pure.

Nothing in an answer is believed to be of its type; only what is named here is told. Fields:
https://github.com/botuniverse/onebot-11/blob/master/api/public.md; files as go-cqhttp has them,
which others follow.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from django.utils import timezone

from tools.text.fences import clean_name
from tools.text.storable import make_storable

Line = dict[str, object]
#: Members, and files of a folder, that are looked at.
MOST_READ = 5_000
#: Characters of one value that are looked at.
LONGEST_WORD = 1_000
#: Characters of the handle of a file or folder.
LONGEST_HANDLE = 512
ROLES = ("owner", "admin", "member")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: From this number on a time is in milliseconds.
_MILLISECONDS = 10**11


def word(data: Mapping[str, object], *names: str) -> str:
    """The first of the values under ``names`` that says anything; "" where they are no texts and no
    numbers."""
    for name in names:
        value = data.get(name)
        if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
            text = str(value)[:LONGEST_WORD].strip()
            if not isinstance(value, str):
                text = text.removesuffix(".0")
            if text:
                return str(make_storable(text))
    return ""


def number(data: Mapping[str, object], *names: str) -> int:
    """The same as a whole number; 0 where there is none that can be meant."""
    digits = word(data, *names)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0


def select_members(
    data: Sequence[object], search: str = "", role: str = ""
) -> list[Mapping[str, object]]:
    """The members of a list that ``search`` finds by id or name, of that ``role``: the owner first,
    then administrators, then the others in the client's order."""
    wanted = search.strip().casefold()
    found = [
        row
        for row in data[:MOST_READ]
        if isinstance(row, dict)
        and _ID.fullmatch(word(row, "user_id"))
        and role in ("", _role(row))
        and any(
            wanted in word(row, name)[:200].casefold() for name in ("user_id", "card", "nickname")
        )
    ]
    return sorted(found, key=lambda row: ROLES.index(_role(row)))


def member_line(data: Mapping[str, object], *, is_whole: bool = False) -> Line:
    """One member. ``is_whole``: with all that is told of one."""
    card, nickname = clean_name(word(data, "card")), clean_name(word(data, "nickname"))
    line: Line = {
        "user_id": word(data, "user_id"),
        "name": card or nickname,
        "nickname": nickname if card else "",
        "role": _role(data),
        "title": clean_name(word(data, "title")),
    }
    if is_whole:
        until = number(data, "shut_up_timestamp")
        line |= {
            "level": word(data, "level")[:10],
            "joined": _time(number(data, "join_time")),
            "last_spoke": _time(number(data, "last_sent_time")),
            "muted_until": _time(until) if until > datetime.now(UTC).timestamp() else "",
        }
    return _said(line)


def group_line(data: Mapping[str, object]) -> Line:
    """A group."""
    is_muted = word(data, "group_all_shut") not in ("", "0") or data.get("group_all_shut") is True
    return _said(
        {
            "group_id": word(data, "group_id"),
            "name": clean_name(word(data, "group_name")),
            "members": number(data, "member_count"),
            "most_members": number(data, "max_member_count"),
            "created": _time(number(data, "group_create_time")),
            "all_muted": is_muted,
        }
    )


def folder_rows(data: Mapping[str, object], kind: str) -> list[Mapping[str, object]]:
    """The ``files`` or ``folders`` of an answer that have a handle."""
    rows, handles = data.get(kind), HANDLES[kind]
    return [
        row
        for row in (rows[:MOST_READ] if isinstance(rows, list) else [])
        if isinstance(row, dict) and 0 < len(word(row, *handles)) <= LONGEST_HANDLE
    ]


HANDLES = {"files": ("file_id", "id"), "folders": ("folder_id", "id")}


def file_line(data: Mapping[str, object]) -> Line:
    """A file of a group."""
    return _said(
        {
            "file_id": word(data, *HANDLES["files"]),
            "name": file_name(data),
            "size": number(data, "file_size", "size"),
            "by": clean_name(word(data, "uploader_name")),
            "uploaded": _time(number(data, "upload_time", "modify_time")),
        }
    )


def folder_line(data: Mapping[str, object]) -> Line:
    """A folder of a group's files."""
    return _said(
        {
            "folder": word(data, *HANDLES["folders"]),
            "name": clean_name(word(data, "folder_name", "name")),
            "files": number(data, "total_file_count"),
        }
    )


def file_name(data: Mapping[str, object]) -> str:
    """The name of a file without the folders that it claims to be in."""
    return clean_name(re.split(r"[/\\]", word(data, "file_name", "name"))[-1])


def _role(data: Mapping[str, object]) -> str:
    role = word(data, "role")
    return role if role in ROLES else "member"


def _time(seconds: int) -> str:
    if seconds >= _MILLISECONDS:
        seconds //= 1000
    if not 0 < seconds < _MILLISECONDS:
        return ""
    return timezone.localtime(datetime.fromtimestamp(seconds, UTC)).strftime("%Y-%m-%d %H:%M")


def _said(line: Line) -> Line:
    return {name: value for name, value in line.items() if value}
