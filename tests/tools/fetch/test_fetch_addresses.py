"""Which addresses downloads may reach: the rule, and the list of exceptions."""

import ipaddress

import pytest
from hypothesis import given, strategies as st

from frostproject.configuration.env import Env, InvalidSetting
from tools.fetch.allow_list import AllowList, is_public, unwrap_address

v4 = st.ip_addresses(v=4)
v6 = st.ip_addresses(v=6)
SPECIAL = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "224.0.0.0/4",
]
inner = st.sampled_from(SPECIAL).flatmap(lambda network: st.ip_addresses(network=network))
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "223.5.5.5",
    "100.63.255.255",
    "172.32.0.0",
    "2606:4700::1111",
    "2408:8000::1",
    "2400:3200::1",
]
METADATA = [
    "169.254.169.254",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "169.254.0.23",
]
OTHERS = [
    "0.0.0.0",
    "::",
    "::1",
    "255.255.255.255",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "::7f00:1",
    "::ffff:0:7f00:1",
]
DOCUMENTS = [
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "2001:db8::1",
    "3fff::1",
    "198.18.0.1",
    "64:ff9b:1::a00:1",
    "100::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address):
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", METADATA + OTHERS + DOCUMENTS)
def test_metadata_and_special_purposes_are_not_public(address):
    assert not is_public(ipaddress.ip_address(address))


@given(v4 | v6)
def test_nothing_is_public_that_the_standard_library_says_is_not(address):
    if is_public(address):
        assert unwrap_address(address).is_global
        assert not unwrap_address(address).is_multicast


@given(inner)
def test_an_inner_address_is_not_public_in_any_wrapping(address):
    number = int(address)
    mapped, compatible, translated = 0xFFFF << 32 | number, number, 0xFFFF << 48 | number
    nat64, six_to_four = 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80
    teredo = 0x20010000 << 96 | (number ^ 0xFFFF_FFFF)
    wrapped = [
        ipaddress.IPv6Address(value)
        for value in (mapped, compatible, translated, nat64, six_to_four, teredo)
    ]
    assert not any(is_public(one) for one in (address, *wrapped))


@given(v4)
def test_a_mapped_or_nat64_address_is_what_it_wraps(address):
    for prefix in ("::ffff:", "64:ff9b::"):
        assert is_public(ipaddress.ip_address(f"{prefix}{address}")) == is_public(address)


# --- The list -------------------------------------------------------------------


def permits(entry: str, host: str, address: str) -> bool:
    return AllowList.parse([entry]).permits(host, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/8", "x", "10.1.2.3"),
        ("10.9.9.9/8", "x", "10.1.2.3"),
        ("127.0.0.1", "x", "::ffff:127.0.0.1"),
        ("[::1]", "x", "::1"),
        ("fd00::/8", "x", "fd12::1"),
        ("NAS.lan", "nas.LAN.", "192.168.1.2"),
        ("napcat", "napcat", "172.18.0.3"),
        ("3proxy", "3proxy", "172.18.0.3"),
        ("例え.jp", "xn--r8jz45g.jp", "10.0.0.1"),
        ("*.lan", "a.b.lan", "10.0.0.1"),
    ],
)
def test_a_listed_destination_is_permitted(entry, host, address):
    assert permits(entry, host, address)
    assert not AllowList().permits(host, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/24", "x", "10.0.1.1"),
        ("127.0.0.1", "localhost", "127.0.0.2"),
        ("nas.lan", "evil-nas.lan", "10.0.0.1"),
        ("nas.lan", "nas.lan.evil.org", "10.0.0.1"),
        ("*.lan", "lan", "10.0.0.1"),
        ("*.lan", "plan", "10.0.0.1"),
        ("0.0.0.0/0", "x", "::1"),
    ],
)
def test_what_is_only_like_a_listed_destination_is_not_permitted(entry, host, address):
    assert not permits(entry, host, address)


@given(v4 | v6, st.text())
def test_an_empty_list_permits_public_addresses_alone(address, host):
    assert AllowList().permits(host, address) == is_public(address)


@pytest.mark.parametrize(
    "entry",
    [
        "10.0.0.0/99",
        "10.0.0.1:80",
        "http://nas",
        "a b",
        "10.0.0",
        "10.*",
        "*",
        "*.*.lan",
        "nas/",
        "u@nas",
        "0x7f",
        "-",
    ],
)
def test_an_entry_that_cannot_be_meant_is_refused(entry):
    with pytest.raises(ValueError, match="cannot be read; wants a host name"):
        AllowList.parse([entry])


def test_a_setting_that_cannot_be_meant_stops_the_start():
    assert Env({"FETCH_ALLOW": "10.0.0.0/8， nas.lan"}).destinations("FETCH_ALLOW") == [
        "10.0.0.0/8",
        "nas.lan",
    ]
    with pytest.raises(InvalidSetting, match=r"^FETCH_ALLOW: 'nas:80' cannot be read"):
        Env({"FETCH_ALLOW": "nas:80"}).destinations("FETCH_ALLOW")
