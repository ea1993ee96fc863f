"""Networks by name: what is in them, and what is no network."""

import pytest

from frostproject.configuration.networks import Networks

PRIVATE = Networks.parse(["private"])


@pytest.mark.parametrize(
    "peer",
    [
        *(
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.7.7",
        ),
        *("fe80::1%eth0", "fd00::1", "fc00::1", "::ffff:192.168.1.1", "::ffff:127.0.0.1", ""),
    ],
)
def test_this_machine_and_private_networks_are_private(peer):
    assert peer in PRIVATE


@pytest.mark.parametrize(
    "peer",
    [
        *(
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.0",
            "192.169.0.1",
            "100.64.0.1",
            "0.0.0.0",
            "::",
            "2001:db8::1",
            "192.0.2.2",
        ),
        *(
            "::ffff:8.8.8.8",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "::127.0.0.1",
            "ff02::1",
            "10.0.0.1.example",
            "localhost",
            "x",
        ),
    ],
)
def test_nothing_else_is(peer):
    assert peer not in PRIVATE


@pytest.mark.parametrize(
    ("entries", "peer", "wanted"),
    [
        (["203.0.113.7"], "203.0.113.7", True),
        (["203.0.113.7"], "::ffff:203.0.113.7", True),
        (["203.0.113.7"], "203.0.113.8", False),
        (["203.0.113.7"], "127.0.0.1", False),
        (["203.0.113.7/24"], "203.0.113.99", True),
        (["Private", "203.0.113.7"], "10.0.0.1", True),
        (["2001:db8::/32"], "2001:db8::5", True),
        (["::ffff:203.0.113.0/120"], "203.0.113.5", True),
        (["::/0"], "203.0.113.5", False),
        (["*"], "203.0.113.5", True),
        (["*"], "", True),
    ],
)
def test_a_list_opens_what_it_names(entries, peer, wanted):
    assert (peer in Networks.parse(entries)) is wanted


@pytest.mark.parametrize(
    "entry",
    ["", "home", "**", "10.0.0.0/33", "300.1.1.1", "10.0.0", "localhost", "10.0.0.0/8/8", "all"],
)
def test_what_is_no_network_is_named(entry):
    with pytest.raises(ValueError, match=repr(entry).replace("*", r"\*")):
        Networks.parse([entry])


def test_what_is_not_private_is_told_apart():
    assert PRIVATE.public == []
    assert Networks.parse(["10.1.0.0/16", "::1"]).public == []
    assert Networks.parse(["private", "203.0.113.0/24", "0.0.0.0/0"]).public == [
        "203.0.113.0/24",
        "0.0.0.0/0",
    ]
    assert Networks.parse(["*", "10.0.0.0/8"]).public == ["*"]
