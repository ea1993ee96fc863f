"""Which URLs a secret may be sent to, by the hosts that it names."""

import pytest

from tools.secrets.hosts import SecretHosts, format_origin, parse_host


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ("api.example.com", "https://api.example.com/x?y"),
        ("api.example.com", "https://API.Example.COM.:443/"),
        ("https://API.example.com/", "https://api.example.com"),
        ("api.example.com:8443", "https://api.example.com:8443/"),
        ("*.example.com", "https://a.b.example.com/"),
        ("http://192.168.1.5:8123", "http://192.168.1.5:8123/"),
        ("http://nas", "http://nas/"),
        ("http://nas", "https://nas/"),
        ("http://[::1]:80", "http://[::1]/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
        ("xn--bcher-kva.example", "https://BÜCHER.example/"),
        ("a.example, b.example；c.example", "https://c.example/"),
    ],
)
def test_what_is_named_is_permitted(hosts: str, url: str):
    assert SecretHosts.parse(hosts).permits(url)
    assert SecretHosts.parse(str(SecretHosts.parse(hosts))).permits(url)


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ("", "https://api.example.com/"),
        ("api.example.com", "http://api.example.com/"),
        ("api.example.com", "http://api.example.com:443/"),
        ("api.example.com", "https://api.example.com:8443/"),
        ("api.example.com", "https://api.example.com.evil.example/"),
        ("api.example.com", "https://evil-api.example.com/"),
        ("api.example.com", "https://api.example.com../"),
        ("api.example.com", "https://api.example.com@evil.example/"),
        ("api.example.com", "https://evil.example/@api.example.com"),
        ("api.example.com", "https://evil.example\\@api.example.com/"),
        ("api.example.com", "https://api.example.com\\.evil.example/"),
        ("api.example.com", "https://api.example.com%2eevil.example/"),
        ("api.example.com", "https://api.exаmple.com/"),
        ("api.example.com", "https:/api.example.com"),
        ("api.example.com", "//api.example.com/"),
        ("api.example.com", "ftp://api.example.com/"),
        ("*.example.com", "https://example.com/"),
        ("*.example.com", "https://.example.com/"),
        ("*.example.com", "https://evilexample.com/"),
        ("*.example.com", "https://a.example.com:444/"),
        ("127.0.0.1", "https://2130706433/"),
        ("program:npx", "https://npx/"),
    ],
)
def test_anything_else_is_not(hosts: str, url: str):
    assert not SecretHosts.parse(hosts).permits(url)


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "*",
            "*.com",
            "*.*.com",
            "a.*.com",
            "*.1.2.3.4",
            "a.example/path",
            "a.example?x",
            "a.example#",
            "a.example\\b",
        ),
        *(
            "ftp://a.example",
            "user@a.example",
            "https://u:p@a.example",
            "a.example:99999",
            "a.example:x",
            "program:",
            "://a",
            "https://",
        ),
    ],
)
def test_an_entry_that_cannot_be_meant_is_refused(entry: str):
    with pytest.raises(ValueError, match="“"):
        SecretHosts.parse(entry)
    assert not SecretHosts.stored(entry)


def test_there_is_an_end_to_entries():
    with pytest.raises(ValueError, match="50"):
        SecretHosts.parse("\n".join(f"h{number}.example" for number in range(51)))


def test_a_program_is_named_by_its_command():
    hosts = SecretHosts.parse("program:npx program:/usr/bin/thing")
    assert hosts.runs("npx")
    assert hosts.runs("/usr/bin/thing")
    assert not hosts.runs("/tmp/npx")
    assert not hosts.runs("")


def test_an_origin_is_scheme_host_and_port():
    assert format_origin("HTTPS://Api.Example.com.:443/a?b#c") == "https://api.example.com"
    assert format_origin("http://[::1]:8000/secret") == "http://[::1]:8000"
    assert format_origin("https://u:p@a.example/") == ""
    assert (
        parse_host("https://a.example/x")
        == parse_host("https://A.example:443/y")
        != parse_host("http://a.example/x")
    )
