"""The URL of a request: values are encoded for where they stand, and lead nowhere else."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, strategies as st

from tests.tools.http_tools.rows import request
from tools.contract import InvalidArguments, ToolFailed
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import RequestRefused, parse_url
from tools.http_tools.templates import is_dot_segment

BASE = "https://api.example.com:8443/v1/users"
HOSTILE = [
    "..",
    ".",
    "../admin",
    "a/../../b",
    "..%2fadmin",
    "%2e%2e",
    "%252e%252e/x",
    "..;/x",
    "x\\..\\y",
    "．．",
    " .. ",
    "a/.",
]


def url(template: str, query: Any = None, **arguments: Any) -> str:
    return request({"url": template, "query": query or {}}, arguments).url


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("北京", "%E5%8C%97%E4%BA%AC"),
        ("a b+c", "a%20b%2Bc"),
        ("a/b\\c", "a%2Fb%5Cc"),
        ("x?y#z&w=1", "x%3Fy%23z%26w%3D1"),
        ("@evil.example:1", "%40evil.example%3A1"),
        ("100%", "100%25"),
        (7, "7"),
        (True, "true"),
        (["a", "b/c"], "a%2Cb%2Fc"),
        ("...", "..."),
    ],
)
def test_a_value_in_the_path_is_one_part_of_it(value, sent):
    assert url(BASE + "/{id}/posts", id=value) == f"{BASE}/{sent}/posts"


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("template", ["/{id}", "/{id}/posts", "/x{id}"])
def test_a_value_that_some_server_could_take_for_a_way_out_is_refused(value, template):
    if template == "/x{id}" and not is_dot_segment(f"x{value}"):
        return
    with pytest.raises(InvalidArguments, match="id 不能作为网址路径的一部分"):
        url(BASE + template, id=value)


def test_dots_that_come_together_from_several_values_are_refused():
    with pytest.raises(InvalidArguments):
        url(BASE + "/{a}{b}", a=".", b=".")


@pytest.mark.parametrize("arguments", [{}, {"id": None}, {"id": ""}])
def test_a_path_without_its_value_is_told_to_the_model(arguments):
    with pytest.raises(InvalidArguments, match="id 不能"):
        url(BASE + "/{id}", **arguments)


def test_control_characters_do_not_go_into_a_path():
    with pytest.raises(InvalidArguments, match="控制字符"):
        url(BASE + "/{id}", id="a\r\nHost: evil")


def test_values_in_a_query_are_encoded_and_add_no_entries():
    sent = url(
        BASE + "?format=json&q={q}",
        {"unit": "{unit}", "a b&": "x={q}", "n": 3, "on": True},
        q="猫&admin=1#x",
        unit="°C",
    )
    assert parse_qsl(urlsplit(sent).query) == [
        ("format", "json"),
        ("q", "猫&admin=1#x"),
        ("unit", "°C"),
        ("a b&", "x=猫&admin=1#x"),
        ("n", "3"),
        ("on", "true"),
    ]


def test_a_list_is_an_entry_for_each_of_its_items():
    sent = url(
        BASE, {"tag": "{tags}", "all": "[{tags}]", "fixed": ["a", "{x}"]}, tags=["a&b", 1], x="y"
    )
    assert parse_qsl(urlsplit(sent).query) == [
        ("tag", "a&b"),
        ("tag", "1"),
        ("all", "[a&b,1]"),
        ("fixed", "a"),
        ("fixed", "y"),
    ]


def test_entries_of_which_no_argument_was_given_are_left_out():
    sent = url(
        BASE + "?a={a}&keep=1",
        {"b": "{b}", "c": "pre-{a}-{c}", "d": "pre-{d}", "e": "{e}"},
        c="3",
        e=None,
    )
    assert parse_qsl(urlsplit(sent).query, keep_blank_values=True) == [
        ("keep", "1"),
        ("c", "pre--3"),
    ]


def test_an_empty_list_leaves_nothing_of_the_query():
    assert url(BASE, {"tag": "{tags}"}, tags=[]) == BASE


def test_what_the_row_has_encoded_stays_as_it_is():
    assert url("https://api.example.com/a%2Fb/文?x=%41%zz&{{y}}=2&flag") == (
        "https://api.example.com/a%2Fb/%E6%96%87?x=%41%25zz&%7By%7D=2&flag"
    )


def test_a_value_that_is_too_long_for_a_url_is_refused():
    with pytest.raises(InvalidArguments, match="过长"):
        url(BASE, {"q": "{q}"}, q="x" * 10_000)
    with pytest.raises(RequestRefused):
        url(BASE, {"q": "{q}"}, q="文" * 2_000)


def test_a_secret_can_stand_in_the_path():
    sent = request({"url": "https://api.example.com/bot{secret:TOKEN}/send"}, TOKEN="12:ab/c").url
    assert sent == "https://api.example.com/bot12%3Aab%2Fc/send"


def test_a_secret_that_is_not_there_is_a_failure_that_says_what_to_do():
    with pytest.raises(ToolFailed, match="密钥 TOKEN 不存在，请告诉机器人主人"):
        request({"url": "https://api.example.com/{secret:TOKEN}"})


# --- Whatever the arguments are ---------------------------------------------------


_pieces = st.sampled_from(
    [
        "..",
        "/",
        "\\",
        "%2e",
        "%2F",
        "@",
        ":",
        "?",
        "#",
        "&",
        "=",
        ";",
        "evil.example",
        "//",
        "\r\n",
        "\0",
        "{a}",
    ]
)
_texts = st.one_of(st.text(max_size=30), st.lists(_pieces, max_size=6).map("".join))
_values = st.recursive(
    st.one_of(
        _texts,
        st.integers(),
        st.booleans(),
        st.none(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)
    ),
    max_leaves=5,
)


@given(_values, _values, _values)
def test_no_value_changes_host_path_or_the_entries_of_the_query(a, b, c):
    try:
        sent = url(BASE + "/{a}/x-{b}/end?fixed=1&q={c}", {"r": "<{c}>"}, a=a, b=b, c=c)
    except (InvalidArguments, RequestRefused):
        return
    parts = urlsplit(sent)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "api.example.com:8443", "")
    segments = parts.path.split("/")
    assert segments[:3] == ["", "v1", "users"]
    assert len(segments) == 6
    assert segments[5] == "end"
    assert not any(is_dot_segment(unquote(segment)) for segment in segments[3:])
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    assert names[0] == "fixed"
    assert set(names) <= {"fixed", "q", "r"}
    assert str(parse_url(sent)) == sent, "the client sends it as it was made"


@given(_texts)
def test_every_text_arrives_in_a_query_as_it_was(text):
    sent = url(BASE, {"q": "{q}", "z": "1"}, q=text)
    assert parse_qsl(urlsplit(sent).query, keep_blank_values=True) == [("q", text), ("z", "1")]


async def test_the_server_receives_what_was_made(file_server):
    made = request(
        {"url": file_server.url + "/v1/{id}", "query": {"q": "{q}"}},
        {"id": "a/b c%2e", "q": "猫&x=1"},
    )
    fetcher = Fetcher(AllowList.parse(["127.0.0.1"]))
    await fetcher.fetch(made)
    await fetcher.close()
    assert file_server.requests[0].target == "/v1/a%2Fb%20c%252e?q=%E7%8C%AB%26x%3D1"
