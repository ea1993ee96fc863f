"""Headers and bodies of a request: values stay values, and what was not given is left out."""

import json
from typing import Any
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from tests.tools.http_tools.rows import request
from tools.contract import InvalidArguments
from tools.fetch.request import check_headers

_texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(['"', "\\", "{", "}", "\r\n", ":", "&", "<", "]"])).map("".join),
)
_json = st.recursive(
    st.one_of(_texts, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)
    ),
    max_leaves=6,
)


def sent_json(body: Any, **arguments: Any) -> Any:
    made = request({"method": "POST", "body_kind": "json", "body": json.dumps(body)}, arguments)
    return None if made.body is None else json.loads(made.body)


def sent_headers(headers: dict[str, str], **arguments: Any) -> Any:
    return request({"headers": headers}, arguments, KEY="k-1").headers


def sent_text(
    body: str, kind: str = "text", headers: dict[str, str] | None = None, **arguments: Any
) -> bytes | None:
    return request(
        {"method": "POST", "body_kind": kind, "body": body, "headers": headers or {}}, arguments
    ).body


# --- Headers --------------------------------------------------------------------


def test_values_stand_in_headers_as_they_are_and_missing_ones_are_left_out():
    headers = {
        "Authorization": "Bearer {secret:KEY}",
        "X-Lang": "{lang}",
        "X-Tags": "{tags}",
        "X-None": "a-{none}",
        "X-Is": "1",
    }
    sent = sent_headers(headers, lang="zh-CN", tags=["a", "b"])
    assert sent == {"Authorization": "Bearer k-1", "X-Lang": "zh-CN", "X-Tags": "a,b", "X-Is": "1"}


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "\0", "a\x7f", "x" * 9_000])
def test_a_value_that_would_begin_another_header_is_refused(value):
    with pytest.raises(InvalidArguments, match="lang 含有不能放进请求头的控制字符"):
        sent_headers({"X-Lang": "{lang}"}, lang=value)


def test_a_value_begins_no_other_cookie():
    assert sent_headers({"Cookie": "city={city}; v=1"}, city="a; admin=1") == {
        "Cookie": "city=a%3B%20admin%3D1; v=1"
    }


@given(_json)
def test_no_value_injects_a_header(value):
    try:
        sent = sent_headers({"X-A": "{a}", "X-B": "b"}, a=value)
    except InvalidArguments:
        return
    assert set(sent) <= {"X-A", "X-B"}
    assert check_headers(sent) == []


def test_what_a_value_says_is_never_taken_for_a_template():
    row = {
        "url": "https://api.example.com/{a}?q={a}",
        "headers": {"X-A": "{a}"},
        "method": "POST",
        "body_kind": "json",
        "body": '"-{a}"',
    }
    made = request(row, {"a": "{secret:KEY}{b}", "b": "b"}, KEY="k-12345")
    assert "k-12345" not in repr(made)
    assert (made.headers["X-A"], made.body) == ("{secret:KEY}{b}", b'"-{secret:KEY}{b}"')


# --- JSON -----------------------------------------------------------------------


def test_an_argument_alone_keeps_its_type_and_others_are_text():
    body = {
        "count": "{count}",
        "at": [1, "{place}"],
        "say": "{count} × {place}",
        "k{x}": "{{x}}",
        "deep": {"on": "{on}"},
    }
    assert sent_json(body, count=3, place={"lat": 1.5}, on=True) == {
        "count": 3,
        "at": [1, {"lat": 1.5}],
        "say": '3 × {"lat": 1.5}',
        "k{x}": "{x}",
        "deep": {"on": True},
    }


def test_texts_of_which_no_argument_was_given_are_left_out():
    body = {"a": "{a}", "b": "note: {a}", "c": ["{a}", "{c}"], "d": {"e": "{a}"}, "f": "{a}{c}"}
    assert sent_json(body, c="x") == {"c": ["x"], "d": {}, "f": "x"}


def test_a_null_that_was_given_is_sent():
    assert sent_json({"due": "{due}", "x": "-{due}"}, due=None) == {"due": None}


def test_a_body_can_be_one_argument_or_nothing():
    assert sent_json("{items}", items=[1, 2]) == [1, 2]
    made = request({"method": "POST", "body_kind": "json", "body": '"{items}"'})
    assert (made.body, dict(made.headers)) == (None, {})


@given(_json, _json)
def test_json_stays_the_same_json_around_every_value(a, b):
    sent = sent_json({"role": "user", "a": "{a}", "list": ["x", "{b}"], "text": "<{a}>"}, a=a, b=b)
    assert list(sent) == ["role", "a", "list"] + (["text"] if a is not None else [])
    assert sent["role"] == "user"
    assert sent["a"] == a
    assert sent["list"] == ["x", b]


# --- Forms and text -------------------------------------------------------------


@given(st.text(max_size=40))
def test_a_form_has_its_fields_and_no_others(text):
    sent = sent_text('{"a b": "{a}", "n": 1, "gone": "{gone}"}', "form", a=text)
    assert sent is not None
    assert parse_qsl(sent.decode(), keep_blank_values=True) == [("a b", text), ("n", "1")]


def test_a_form_repeats_the_field_of_a_list():
    assert sent_text('{"id": "{ids}"}', "form", ids=[1, "b c"]) == b"id=1&id=b+c"


def test_a_text_is_sent_as_it_is():
    assert sent_text("今天 {city}{none}：{{x}}", city="上海") == "今天 上海：{x}".encode()


@given(
    st.text(
        alphabet=st.characters(min_codepoint=32, exclude_categories=["Cs", "Cn", "Co"]), max_size=40
    )
)
def test_values_in_xml_are_no_markup(text):
    sent = sent_text('<q a="{a}">{a}</q>', headers={"Content-Type": "application/soap+xml"}, a=text)
    assert sent is not None
    root = ElementTree.fromstring(sent)
    assert (root.text or "", len(root)) == (text, 0)


@pytest.mark.parametrize(
    ("kind", "body", "usual"),
    [
        ("json", "{}", "application/json"),
        ("form", "{}", "application/x-www-form-urlencoded"),
        ("text", "x", "text/plain; charset=utf-8"),
    ],
)
def test_a_body_says_what_it_is_unless_the_row_does(kind, body, usual):
    row = {"method": "POST", "body_kind": kind, "body": body}
    assert request(row).headers == {"Content-Type": usual}
    assert request({**row, "headers": {"content-type": "a/b"}}).headers == {"content-type": "a/b"}


def test_values_that_a_template_repeats_beyond_measure_are_refused():
    with pytest.raises(InvalidArguments, match="参数过大"):
        sent_text("{a}" * 100, a="x" * 100_000)
