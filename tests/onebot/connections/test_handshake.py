"""The handshake: every way in, and everything that is kept out, with a reason that can be acted
on."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent.domain.types import playground_account
from onebot.connections.handshake import (
    AccountTokens,
    ClosedDoor,
    Handshake,
    HandshakeAccepted,
    HandshakePolicy,
    HandshakeRefused,
    account_refusal,
    hash_token,
    judge_handshake,
)

TOKEN = "t0k-5ecret"
LOOPBACK = "127.0.0.1"
REMOTE = "192.0.2.7"


def verdict(
    headers: Mapping[str, str] | None = None,
    *,
    query: str = "",
    path: str = "/ws/frostagent",
    peer: str = REMOTE,
    token: str = TOKEN,
    origins: tuple[str, ...] = (),
    subprotocols: tuple[str, ...] = (),
    trust: bool = False,
    tokens: Mapping[str, str] = MappingProxyType({}),
) -> HandshakeAccepted | HandshakeRefused:
    handshake = Handshake(
        path, query, {"host": "bot.example:1234", **(headers or {})}, peer, subprotocols
    )
    accounts = AccountTokens()
    accounts.replace({account: hash_token(one) for account, one in tokens.items()})
    return judge_handshake(handshake, HandshakePolicy(token, origins, trust, accounts))


def with_token(**headers: str) -> HandshakeAccepted | HandshakeRefused:
    return verdict(
        {
            "authorization": f"Bearer {TOKEN}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
    )


# --- Tokens ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme", ["Bearer", "bearer", "BEARER", "Token", "token", "tOkEn", "Bearer "]
)
def test_a_token_is_accepted_under_either_scheme_in_any_case(scheme):
    assert isinstance(verdict({"authorization": f"{scheme} {TOKEN}"}), HandshakeAccepted)


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer "])
def test_a_token_is_accepted_from_the_query(authorization):
    headers = {} if authorization is None else {"authorization": authorization}
    assert isinstance(verdict(headers, query=f"a=b&access_token={TOKEN}"), HandshakeAccepted)


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Token", TOKEN, f"Basic {TOKEN}", f"Bearer{TOKEN}"]
)
def test_what_is_no_token_is_refused_as_missing(authorization):
    assert verdict({"authorization": authorization}) == HandshakeRefused(
        "the client presented no access token"
    )


@pytest.mark.parametrize(
    "given", ["x", TOKEN.upper(), f"{TOKEN}x", TOKEN[:-1], f"{TOKEN} x", "ÿ", f'"{TOKEN}"']
)
def test_another_token_is_refused_as_wrong(given):
    assert verdict({"authorization": f"Bearer {given}"}) == HandshakeRefused(
        "the client presented a wrong access token"
    )


@pytest.mark.parametrize(
    "query", ["", "access_token=", "token=" + TOKEN, "ACCESS_TOKEN=" + TOKEN, "access_token"]
)
def test_a_query_without_the_token_is_refused_as_missing(query):
    assert verdict(query=query) == HandshakeRefused("the client presented no access token")


@pytest.mark.parametrize("token", ["密钥", "a b", "a&b=c", "100%", "a/b="])
def test_a_token_of_any_signs_is_accepted_from_header_and_encoded_query(token):
    from_header = verdict(
        {"authorization": f"Bearer {token.encode().decode('latin1')}"}, token=token
    )
    encoded = "".join(f"%{byte:02X}" for byte in token.encode())
    assert isinstance(from_header, HandshakeAccepted)
    assert isinstance(verdict(query=f"access_token={encoded}", token=token), HandshakeAccepted)


def test_a_handshake_is_a_few_tries_and_not_hundreds():
    """Each token is hashed for each account that has one of its own."""
    guesses = [f"access_token=guess{number}" for number in range(1_000)]
    assert isinstance(
        verdict(query="&".join([*guesses, f"access_token={TOKEN}"])), HandshakeRefused
    )
    assert isinstance(
        verdict(query="&".join([guesses[0], *[f"access_token={TOKEN}"] * 1_000])), HandshakeAccepted
    )


def test_a_plus_in_the_query_is_a_plus():
    """Clients send the address as it was typed; forms alone mean a space by it."""
    assert isinstance(verdict(query="access_token=a+b/c=", token="a+b/c="), HandshakeAccepted)


@pytest.mark.parametrize("peer", [LOOPBACK, REMOTE])
def test_a_configured_token_is_wanted_from_everywhere(peer):
    assert isinstance(verdict(peer=peer), HandshakeRefused)


def test_a_client_with_the_token_may_come_through_a_proxy():
    assert isinstance(with_token(x_forwarded_for="203.0.113.9", via="1.1 proxy"), HandshakeAccepted)


# --- Without a token ------------------------------------------------------------

HERE = {"host": "localhost:1234"}


@pytest.mark.parametrize("peer", [LOOPBACK, "127.8.8.8", "::1", "::1%lo", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("authorization", [None, "Bearer", "Basic x"])
def test_where_loopback_is_trusted_anything_on_this_machine_may_connect(peer, authorization):
    headers = HERE if authorization is None else {**HERE, "authorization": authorization}
    assert isinstance(verdict(headers, peer=peer, trust=True), HandshakeAccepted)
    assert verdict(headers, peer=peer) == HandshakeRefused("the client presented no access token")


@pytest.mark.parametrize(
    "peer",
    [REMOTE, "10.0.0.5", "169.254.1.1", "2001:db8::1", "::ffff:10.0.0.5", "0.0.0.0", "::", "x", ""],
)
def test_where_loopback_is_trusted_nothing_else_is(peer):
    assert verdict(HERE, peer=peer, trust=True) == HandshakeRefused(
        "the client presented no access token"
    )


def test_a_wrong_token_is_refused_even_where_none_is_needed():
    refused = HandshakeRefused("the client presented a wrong access token")
    assert verdict({**HERE, "authorization": "Bearer x"}, peer=LOOPBACK, trust=True) == refused
    assert verdict(HERE, query="access_token=x", peer=LOOPBACK, trust=True) == refused


@pytest.mark.parametrize(
    "header",
    [
        *(
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-forwarded",
            "x-forwarded-anything",
        ),
        *(
            "forwarded",
            "via",
            "x-real-ip",
            "x-client-ip",
            "cf-connecting-ip",
            "true-client-ip",
            "cf-ray",
        ),
        *("proxy-connection", "ngrok-trace-id", "x-azure-clientip", "x-bluecoat-via"),
        *("x_forwarded_for", "x_real_ip", "x-forwarded_host", "true_client_ip", "ngrok_trace_id"),
    ],
)
def test_a_proxy_on_this_machine_is_not_trusted(header):
    assert isinstance(verdict({**HERE, header: ""}, peer=LOOPBACK, trust=True), HandshakeRefused)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:1234",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.9.8.7:1",
        "[::1]",
        "[::1]:1234",
    ],
)
def test_a_loopback_host_is_this_machine(host):
    assert isinstance(verdict({"host": host}, peer=LOOPBACK, trust=True), HandshakeAccepted)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "",
            "localhost.",
            "127.1",
            "0177.0.0.1",
            "2130706433",
            "[::ffff:127.0.0.1]",
            "::1",
            "0.0.0.0",
            "[::]",
        ),
        *(
            "bot.example",
            "localhost.evil.example",
            "evil.example:127",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil",
            "127.0.0.999",
        ),
        *(
            "localhost:",
            "localhost:x",
            "localhost evil",
            "localhost, evil.example",
            "localhost\n",
            "x.localhost",
            "１27.0.0.1",
        ),
    ],
)
def test_any_other_host_is_not(host):
    assert isinstance(verdict({"host": host}, peer=LOOPBACK, trust=True), HandshakeRefused)


# --- Tokens of accounts ---------------------------------------------------------

OWN = {"1": "the token of one", "2": "the token of two", "3": "the token of two"}


def holding(
    token: str, self_id: str | None = None, **options: Any
) -> HandshakeAccepted | HandshakeRefused:
    named = {} if self_id is None else {"x-self-id": self_id}
    return verdict({"authorization": f"Bearer {token}", **named}, tokens=OWN, **options)


def test_an_account_with_a_token_of_its_own_is_opened_by_that_alone():
    assert isinstance(holding(OWN["1"], "1"), HandshakeAccepted)
    assert isinstance(holding(TOKEN, "1"), HandshakeRefused)
    assert isinstance(holding(OWN["2"], "1"), HandshakeRefused)
    assert isinstance(
        verdict({**HERE, "x-self-id": "1"}, peer=LOOPBACK, trust=True, tokens=OWN), HandshakeRefused
    )


def test_an_accounts_token_opens_no_other_account():
    assert isinstance(holding(OWN["1"], "9"), HandshakeRefused)
    assert isinstance(holding(TOKEN, "9"), HandshakeAccepted)
    assert isinstance(holding(OWN["2"], "3"), HandshakeAccepted)


def test_a_client_that_names_no_account_is_told_by_its_token_what_it_may_be():
    admitted, common = holding(OWN["1"]), holding(TOKEN)
    assert isinstance(admitted, HandshakeAccepted)
    assert isinstance(common, HandshakeAccepted)
    assert admitted.keys.isdisjoint(common.keys)
    assert isinstance(holding("wrong"), HandshakeRefused)


def test_nobody_is_let_in_before_the_accounts_tokens_are_known():
    handshake = Handshake("/ws/frostagent", f"access_token={TOKEN}", {"host": "x"}, REMOTE)
    assert isinstance(judge_handshake(handshake, HandshakePolicy(TOKEN, ())), HandshakeRefused)


# --- Origins --------------------------------------------------------------------

LISTED = ("https://panel.example", "trusted.example:8443", "Plain.Example", "http://slash.example/")


@pytest.mark.parametrize(
    "origin",
    [
        "http://bot.example:1234",
        "https://bot.example:1234",
        "https://BOT.example:1234",
        "https://panel.example",
        "HTTPS://Panel.Example",
        "https://trusted.example:8443",
        "http://trusted.example:8443",
        "http://plain.example",
        "http://slash.example",
    ],
)
def test_the_same_host_and_listed_origins_may_connect(origin):
    headers = {"authorization": f"Bearer {TOKEN}", "origin": origin}
    assert isinstance(verdict(headers, origins=LISTED), HandshakeAccepted)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "file://",
        "bot.example:1234",
        "http://bot.example",
        "http://bot.example:4321",
        "http://bot.example:1234.evil.example",
        "http://panel.example",
        "https://panel.example:444",
        "https://panel.example.evil.example",
        "https://trusted.example",
        "http://[::1",
        "http://bot.example:1234@evil.example",
    ],
)
def test_other_origins_are_refused_with_the_setting_to_mend(origin):
    refused = verdict({"authorization": f"Bearer {TOKEN}", "origin": origin}, origins=LISTED)
    assert isinstance(refused, HandshakeRefused)
    assert "WS_ALLOWED_ORIGINS" in refused.reason


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("localhost:1234", True),
        ("[::1]:1234", True),
        ("pc.lan.example:1234", False),
        ("evil.example:1234", False),
    ],
)
def test_without_a_token_a_page_must_come_from_this_machine(host, admitted):
    """A name of the attacker's may point at 127.0.0.1; the page then has the same host, and must
    not get in."""
    headers = {"host": host, "origin": f"http://{host}"}
    assert isinstance(verdict(headers, peer=LOOPBACK, trust=True), HandshakeAccepted) == admitted


def test_an_origin_does_not_stand_in_for_the_token():
    refused = verdict({"origin": "http://bot.example:1234"})
    assert refused == HandshakeRefused("the client presented no access token")


# --- Account and role -----------------------------------------------------------


@pytest.mark.parametrize("self_id", ["10001", "1", "4294967296", "9" * 32])
def test_the_account_is_taken_from_the_header(self_id):
    admitted = with_token(x_self_id=self_id)
    assert isinstance(admitted, HandshakeAccepted)
    assert admitted.self_id == self_id


def test_an_account_that_is_not_named_may_come_in_and_is_learnt_later():
    admitted = with_token()
    assert isinstance(admitted, HandshakeAccepted)
    assert admitted.self_id == ""


@pytest.mark.parametrize("name", ["my_bot", "1.0", "A1B2", "~" * 64])
def test_a_name_that_is_no_known_account_waits_for_the_first_event(name):
    admitted = with_token(x_self_id=name)
    assert isinstance(admitted, HandshakeAccepted)
    assert (admitted.self_id, admitted.name) == ("", name)


@pytest.mark.parametrize("name", ["", "1 2", "9" * 65, "²", "a\x7f"])
def test_what_is_no_name_is_refused(name):
    assert with_token(x_self_id=name) == HandshakeRefused(
        "X-Self-ID is no name of up to 64 visible signs of ASCII"
    )


def test_a_name_that_is_known_stands_for_its_account_unless_several_go_by_it():
    accounts = AccountTokens()
    accounts.replace({}, {"my_bot": frozenset({"8"}), "7": frozenset({"7"})})
    assert [accounts.find_account(one) for one in ("my_bot", "7", "9")] == ["8", "7", "9"]
    assert accounts.learn("my_bot", "9")
    assert accounts.find_account("my_bot") == ""
    assert not accounts.learn("my_bot", "8")


@pytest.mark.parametrize(
    ("named", "role"),
    [
        ("Universal", "universal"),
        ("universal", "universal"),
        ("API", "api"),
        ("Api", "api"),
        ("api", "api"),
        ("EVENT", "event"),
        ("Event", "event"),
        (" Event ", "event"),
    ],
)
def test_a_role_is_understood_in_any_case(named, role):
    admitted = with_token(x_client_role=named)
    assert isinstance(admitted, HandshakeAccepted)
    assert admitted.role == role


@pytest.mark.parametrize("named", ["banana", "Universal,API", "客户端"])
def test_an_unknown_role_is_refused(named):
    refused = with_token(x_client_role=named)
    assert isinstance(refused, HandshakeRefused)
    assert "X-Client-Role" in refused.reason


@pytest.mark.parametrize(
    ("path", "named", "role"),
    [
        ("/ws/frostagent", None, "universal"),
        ("/ws/frostagent/", None, "universal"),
        ("/ws/frostagent/api", None, "api"),
        ("/ws/frostagent/event/", None, "event"),
        ("/ws/frostagent/api", "Universal", "universal"),
        ("/ws/frostagent/event", "Event", "event"),
    ],
)
def test_the_path_tells_the_role_where_the_header_does_not(path, named, role):
    headers = {"authorization": f"Bearer {TOKEN}", **({"x-client-role": named} if named else {})}
    admitted = verdict(headers, path=path)
    assert isinstance(admitted, HandshakeAccepted)
    assert admitted.role == role


@pytest.mark.parametrize("subprotocols", [("12.frost",), ("json", "12.qq")])
def test_a_onebot_12_client_is_told_what_it_is(subprotocols):
    refused = verdict({"authorization": f"Bearer {TOKEN}"}, subprotocols=subprotocols)
    assert isinstance(refused, HandshakeRefused)
    assert "OneBot 12" in refused.reason


# --- From the wire --------------------------------------------------------------


def test_a_handshake_is_read_from_an_asgi_scope():
    scope: dict[str, object] = {
        "path": "/ws/frostagent",
        "query_string": b"access_token=t",
        "headers": [(b"X-Self-ID", b"10001"), (b"user-agent", b"OneBot/11")],
        "client": ["192.0.2.7", 5],
        "subprotocols": ["json"],
    }
    wanted = {"x-self-id": "10001", "user-agent": "OneBot/11"}
    assert Handshake.from_scope(scope) == Handshake(
        "/ws/frostagent", "access_token=t", wanted, REMOTE, ("json",)
    )


def test_two_hosts_are_no_host():
    headers = [(b"Host", b"localhost"), (b"host", b"evil.example")]
    handshake = Handshake.from_scope(
        {"path": "/", "query_string": b"", "headers": headers, "client": [LOOPBACK, 5]}
    )
    assert handshake.headers["host"] == "localhost, evil.example"


def test_a_scope_without_a_peer_is_a_local_socket():
    handshake = Handshake.from_scope(
        {"path": "/", "query_string": b"", "headers": [], "client": None}
    )
    assert handshake.peer == ""


NAMES = st.sampled_from(
    ["authorization", "origin", "host", "x-self-id", "x-client-role", "user-agent", "via"]
)
VALUES = st.text(st.characters(max_codepoint=255)) | st.sampled_from(
    [f"Bearer {TOKEN}", "Bearer", "http://[", "10001"]
)


@given(st.dictionaries(NAMES, VALUES), VALUES, st.booleans())
def test_no_handshake_raises_or_has_the_token_told(headers, query, trusted):
    found = verdict(headers, query=query, peer=LOOPBACK, trust=trusted, tokens=OWN)
    if isinstance(found, HandshakeRefused):
        assert found.reason.isprintable()
        assert TOKEN not in found.reason or TOKEN in headers.get("origin", "")


# --- Playgrounds ----------------------------------------------------------------

PLAYGROUND, OF_ANOTHER = playground_account(1), playground_account(2)


class Door(ClosedDoor):
    """Opens one playground with one token."""

    def find_account(self, handshake: Handshake, tokens: Sequence[bytes]) -> str:
        return PLAYGROUND if b"play" in tokens else ""


def played(token: str, **headers: str) -> HandshakeAccepted | HandshakeRefused:
    given = {"host": "bot.example", **{name.replace("_", "-"): v for name, v in headers.items()}}
    handshake = Handshake("/ws/frostagent", f"access_token={token}", given, REMOTE)
    accounts = AccountTokens()
    accounts.replace({OF_ANOTHER: hash_token("own token of a playground")})
    return judge_handshake(handshake, HandshakePolicy(TOKEN, (), True, accounts, Door()))


def test_token_of_a_playground_opens_that_account_alone():
    verdict = played("play")
    assert isinstance(verdict, HandshakeAccepted)
    assert (verdict.self_id, verdict.role) == (PLAYGROUND, "universal")
    for other in ("10001", OF_ANOTHER):
        assert account_refusal(other, verdict.keys, AccountTokens())
        assert isinstance(played("play", x_self_id=other), HandshakeRefused)


@pytest.mark.parametrize("token", [TOKEN, "own token of a playground", "wrong"])
@pytest.mark.parametrize("account", [PLAYGROUND, OF_ANOTHER])
def test_no_other_token_opens_a_playground(token, account):
    assert isinstance(played(token, x_self_id=account), HandshakeRefused)


def test_trusted_loopback_opens_no_playground():
    headers = {"host": "127.0.0.1", "x-self-id": PLAYGROUND}
    assert isinstance(verdict(headers, peer=LOOPBACK, trust=True), HandshakeRefused)


def test_playground_obeys_the_rules_of_origins():
    assert isinstance(played("play", origin="https://evil.example"), HandshakeRefused)
    assert isinstance(played("play", origin="https://bot.example"), HandshakeAccepted)
