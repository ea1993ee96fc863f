"""What is entered in clients: the address from where they are, and files that can be read."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from frostproject.cockpit.start_clients import GUIDES, HIDDEN, client_address, find_guide

OWN = ["localhost", "127.0.0.1", "[::1]", "192.168.1.5", "box.local"]
URL = "ws://192.168.1.5:1234/ws/frostagent"


@pytest.mark.parametrize(
    ("host", "place", "address"),
    [
        ("localhost:1234", "here", "ws://127.0.0.1:1234/ws/frostagent"),
        ("localhost:1234", "docker", "ws://host.docker.internal:1234/ws/frostagent"),
        ("[::1]:1234", "elsewhere", URL),
        ("bot.example", "elsewhere", "ws://bot.example/ws/frostagent"),
        ("192.168.1.5:1234", "docker", URL),
    ],
)
def test_the_address_is_one_that_the_client_can_reach(host, place, address):
    assert client_address("ws", host, place, OWN) == address


def test_the_files_of_clients_hold_address_and_token():
    napcat = json.loads(find_guide("napcat").configure(URL, "t"))["network"]["websocketClients"][0]
    llbot = json.loads(find_guide("llbot").configure(URL, "t"))["ob11"]["connect"][0]
    lagrange = json.loads(find_guide("lagrange").configure(URL, "t"))["Implementations"][0]
    assert (napcat["url"], napcat["token"]) == (llbot["url"], llbot["token"]) == (URL, "t")
    snowluma = json.loads(find_guide("snowluma").configure(URL, "t"))["networks"]["wsClients"][0]
    assert (snowluma["url"], snowluma["accessToken"]) == (URL, "t")
    assert (lagrange["Host"], lagrange["Port"]) == ("192.168.1.5", 1234)
    assert (lagrange["Suffix"], lagrange["AccessToken"]) == ("/ws/frostagent", "t")


def test_signs_in_a_token_break_no_file_and_no_address():
    token = "a'b\"c&d#e"
    for guide in GUIDES[:3]:
        assert json.dumps(token) in guide.configure(URL, token)
    assert json.dumps(token) in find_guide("gensokyo").configure(URL, token)
    assert "access-token: 'a''b\"c&d#e'" in find_guide("go-cqhttp").configure(URL, token)
    assert "access_token: 'a''b\"c&d#e'" in find_guide("onebots").configure(URL, token)
    whole = find_guide("other").settings(URL, token)[-1].value
    assert parse_qs(urlsplit(whole).query) == {"access_token": [token]}


def test_dots_stay_dots_while_the_token_is_hidden():
    assert HIDDEN in find_guide("other").settings(URL, HIDDEN)[-1].value


def test_an_unknown_client_is_shown_the_first_guide():
    assert find_guide("<script>") is GUIDES[0]
