"""No header moves the addresses of this server to another path."""

import pytest

from tests.conftest import TOKEN
from tests.security.wire import ask, connected, head, status

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
)
ALLOWED = f"Authorization: Bearer {TOKEN}"
SPELLINGS = [
    ["Daphne-Root-Path: /ws/frostagent"],
    ["dApHnE-rOoT-pAtH: /ws/frostagent"],
    ["Daphne-Root-Path: /nowhere", "Daphne-Root-Path: /ws/frostagent"],
    ["Daphne-Root-Path: %2Fws%2Ffrostagent"],
    ["Daphne-Root-Path: /ws/frostagent\xff"],
    ["X-Other: 1", "Daphne-Root-Path:/ws/", " frostagent"],
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "path", ["/ws/frostagent/admin/login/", "/ws/frostagent/agent/query", "/ws/frostagent/health"]
)
def test_what_lies_behind_an_exposed_path_stays_there(live, path, spelling):
    assert status(ask(live, head("GET", path, *spelling, "Connection: close"))) == 426


@pytest.mark.parametrize(
    "spelling", [["Daphne-Root-Path: /nowhere"], ["DAPHNE-ROOT-PATH: /x", "daphne-root-path: \xff"]]
)
def test_an_address_answers_as_without_the_header(live, spelling):
    before = len(live.log)
    assert status(ask(live, head("GET", "/health", *spelling, "Connection: close"))) == 200
    assert "Traceback" not in live.log[before:]


@pytest.mark.parametrize("root", ["/elsewhere", "%2Felsewhere", "\xff"])
def test_a_websocket_is_where_it_is_and_nowhere_else(live, root):
    def handshake(path: str) -> int:
        request = head(
            "GET",
            path,
            *UPGRADE,
            ALLOWED,
            "X-Client-Role: banana",
            f"Daphne-Root-Path: {root}",
            "daphne-root-path: /x",
        )
        return status(ask(live, request))

    assert handshake("/elsewhere/ws/frostagent") == 403
    assert handshake("/ws/frostagent") == 403
    assert "X-Client-Role is not one of" in live.log


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85"])
def test_no_header_is_hidden_in_the_value_of_another(live, sign):
    """What takes headers away in front of this server would not see it there."""
    hidden = f"User-Agent: bot{sign}X-Client-Role: banana{sign}Daphne-Root-Path: /elsewhere"
    with connected(live) as connection:
        connection.sendall(head("GET", "/ws/frostagent", *UPGRADE, ALLOWED, hidden))
        assert status(connection.recv(65536)) == 101
    assert (
        status(ask(live, head("GET", "/elsewhere/ws/frostagent", *UPGRADE, ALLOWED, hidden))) == 403
    )
