"""Which URLs can be fetched, and how they look when they are sent."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import translation
from hypothesis import given, strategies as st
from yarl import URL

from tools.fetch.allow_list import AllowList
from tools.fetch.request import (
    FetchError,
    FetchRequest,
    RequestRefused,
    WireRequest,
    check_headers,
    check_url,
    follow_redirect,
    join_url,
    parse_url,
)

SIGNED = "http://a.cn/~x%7e%2F,;:@!$&'()*?rkey=CAES%2bKD+a&b==&c=[1]|"


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://a.cn/x", "begin with"),
        ("file:///etc/passwd", "begin with"),
        ("data:text/plain,x", "begin with"),
        ("//a.cn/x", "begin with"),
        ("a.cn", "begin with"),
        ("", "begin with"),
        ("http://u:p@a.cn/", "user name"),
        ("http://@a.cn/", "user name"),
        ("http://a.cn@b.cn", "user name"),
        ("http:///x", "no valid host"),
        ("http://a b/", "no valid host"),
        ("http://a%2ecn/", "no valid host"),
        ("http://[fe80::1%25eth0]/", "no valid host"),
        ("http://[::1", "not a URL"),
        ("http://a.cn:x/", "not a URL"),
        ("http://a.cn:70000/", "not a URL"),
        ("http://a.cn\\@b.cn/", "not a URL"),
        ("http://a.cn/\r\nHost: b", "not a URL"),
        ("http://a.cn/" + "x" * 8_000, "too long"),
    ],
)
def test_a_url_that_cannot_be_fetched_is_refused_with_the_reason(url, problem):
    assert problem in check_url(url)[0]
    with pytest.raises(RequestRefused, match=problem):
        parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.cn",
        "HTTPS://A.cn:8443/x?y#z",
        " http://a_b/ ",
        "http://[::1]:1/",
        "http://2130706433",
    ],
)
def test_a_url_that_can_be_fetched_has_no_problems(url):
    assert check_url(url) == []


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("http://127.0.0.1/", True),
        ("http://[::1]/", True),
        ("http://10.0.0.1/", False),
        ("http://1.1.1.1", False),
        ("http://nas", False),
    ],
)
def test_a_form_can_judge_addresses_that_are_written_out(url, is_refused):
    assert bool(check_url(url, AllowList.parse(["10.0.0.0/8"]))) is is_refused


def test_a_signed_link_is_sent_as_it_is():
    assert str(parse_url(SIGNED.rstrip("|"))) == SIGNED.rstrip("|")


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (
            "http://例え.jp/路 径?q=你#top",
            "http://xn--r8jz45g.jp/%E8%B7%AF%20%E5%BE%84?q=%E4%BD%A0",
        ),
        ("http://a.cn/100%", "http://a.cn/100%25"),
        ("http://１２７。0.0.1/", "http://127.0.0.1/"),
        ("http://a.cn/x#y", "http://a.cn/x"),
    ],
)
def test_a_url_as_people_write_it_is_quoted(url, sent):
    assert str(parse_url(url)) == sent


@given(st.text(), st.sampled_from(["", "http://", "https://a.cn/", "http://a.cn:"]))
def test_any_text_is_a_url_or_refused(text, start):
    if check_url(start + text):
        with pytest.raises(RequestRefused):
            parse_url(start + text)
        return
    url = parse_url(start + text)
    assert url.scheme in ("http", "https")
    assert url.raw_host
    assert url.raw_user is None


@given(st.text())
def test_any_location_leads_somewhere_or_is_refused(location):
    with contextlib.suppress(RequestRefused):
        assert join_url(URL("http://a.cn/b"), location).scheme in ("http", "https")


# --- Headers --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Transfer-Encoding", "X:Y", "X\r\nY", "", "名"]
)
def test_a_header_that_is_not_the_callers_to_set_is_named(name):
    assert name in check_headers({name: "x", "X-Api-Key": "名"})[0]


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "\0", "\ud800"])
def test_a_header_value_that_would_end_its_line_is_refused(value):
    assert len(check_headers({"X-Good": "a\tb", "X-Bad": value})) == 1


def test_a_method_that_is_none_is_a_mistake_of_the_program():
    with pytest.raises(ValueError, match="TRACE"):
        FetchRequest("http://a.cn", method="TRACE")


# --- Redirects ------------------------------------------------------------------


def hop(
    url: str = "http://a.cn/x", method: str = "GET", body: bytes | None = None, **headers: Any
) -> WireRequest:
    return WireRequest(URL(url), method, headers, body)


@pytest.mark.parametrize(
    ("method", "status", "becomes"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("PUT", 303, "GET"),
        ("PUT", 302, "PUT"),
        ("POST", 307, "POST"),
        ("HEAD", 303, "HEAD"),
    ],
)
def test_a_redirect_changes_the_method_as_in_browsers(method, status, becomes):
    following = follow_redirect(
        hop(method=method, body=b"x", Content_Type="text/plain"), status, "/y"
    )
    assert (following.method, str(following.url)) == (becomes, "http://a.cn/y")
    assert following.body == (None if becomes == "GET" else b"x")


@pytest.mark.parametrize(
    "location",
    ["http://b.cn/", "http://a.cn:81/", "http://sub.a.cn/", "https://a.cn:444/", "//b.cn"],
)
def test_another_origin_is_told_nothing_that_may_be_secret(location):
    headers: dict[str, Any] = {
        "Authorization": "k",
        "X-Api-Key": "k",
        "Cookie": "c",
        "Referer": "r",
        "Accept": "image/*",
    }
    assert follow_redirect(hop(**headers), 302, location).headers == {"Accept": "image/*"}


@pytest.mark.parametrize("location", ["http://A.CN./y", "https://a.cn/y", "?q", "http://a.cn:80"])
def test_the_same_origin_and_its_encrypted_twin_are_told_everything(location):
    following = follow_redirect(hop(method="POST", body=b"x", Authorization="k"), 308, location)
    assert (following.headers, following.body) == ({"Authorization": "k"}, b"x")


def test_a_body_does_not_follow_to_another_origin():
    with pytest.raises(FetchError, match="redirects a request with a body"):
        follow_redirect(hop(method="POST", body=b"x"), 307, "http://b.cn/")


def test_what_may_be_secret_does_not_leave_encryption():
    with pytest.raises(FetchError, match="from https to http"):
        follow_redirect(hop("https://a.cn/", Authorization="k"), 302, "http://a.cn/")


def test_a_plain_picture_may_leave_encryption():
    assert (
        str(follow_redirect(hop("https://a.cn/", Accept="image/*"), 302, "http://a.cn/").url)
        == "http://a.cn/"
    )


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://u:p@a.cn/", "http://[", "javascript:x"]
)
def test_a_redirect_to_what_cannot_be_fetched_is_refused(location):
    with pytest.raises(FetchError, match="cannot be fetched"):
        follow_redirect(hop(), 302, location)
