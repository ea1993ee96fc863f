"""The people, groups and accounts that appear in tests, and the words of the silence probe."""

import itertools
from typing import Any

BOT = 10001
OTHER_BOT = 10002
GROUP = 30001
OTHER_GROUP = 30002
OWNER = 20001
MEMBER = 20002
STRANGER = 20003
PROBER = 20999

#: What ``FakeOneBot.no_action`` says, and what ``ScriptedModel`` answers to it unasked.
PROBE = "silence-probe-4d1f"
PROBE_ANSWER = "silence-probe-4d1f-answered"

_PROFILES: dict[int, dict[str, str]] = {
    OWNER: {"nickname": "Olga", "card": "群主", "role": "owner"},
    MEMBER: {"nickname": "Mei", "card": "", "role": "member"},
    STRANGER: {"nickname": "Stan"},
}

# Above 2**31, as many real accounts are.
_fresh = itertools.count(4_000_000_001)


def fresh_id() -> int:
    """An id that no other test uses: a person, a group or an account on a server that tests
    share."""
    return next(_fresh)


def sender(user_id: int | str) -> dict[str, Any]:
    """The ``sender`` object of an event; a stranger's has no role, as in temporary sessions."""
    profile = _PROFILES.get(int(user_id), {}) if str(user_id).isdigit() else {}
    return {"user_id": user_id, "nickname": f"user {user_id}", **profile}
