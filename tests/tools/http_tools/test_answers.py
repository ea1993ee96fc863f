"""What the model is told of an answer: text in any charset, JSON, pages, pictures, failures; and
never a secret."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.tools.http_tools.rows import settings
from tools.contract import ToolExecutionResult
from tools.fetch.request import FetchResponse
from tools.http_tools.tool import (
    EXCERPT,
    NO_MATCH,
    NOTHING,
    answer_template,
    decode_text,
    extract_text,
    mask_answer_text,
)
from tools.registry.execution import validate_result
from tools.secrets.masked import MASK, SecretMask

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def fetched(body: bytes | str, content_type: str = "", status: int = 200) -> FetchResponse:
    body = body.encode() if isinstance(body, str) else body
    return FetchResponse("https://api.example.com/", status, {"content-type": content_type}, body)


def told(answer: FetchResponse, path: str = "", *secrets: str) -> ToolExecutionResult:
    row = settings(answer_kind="jsonpath" if path else "text", answer_path=path)
    return validate_result(answer_template(row).result(answer, SecretMask(secrets)))


# --- Text -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("天气晴".encode(), "text/plain"),
        ("天气晴".encode(), "text/plain; charset=utf-8"),
        ("天气晴".encode("gb18030"), "text/plain; charset=GB2312"),
        ("天气晴".encode("gb18030"), "text/plain"),
        ("天气晴".encode("gb18030"), "text/plain; charset=utf-8"),
        ("天气晴".encode(), "text/plain; charset=utf-16"),
        ("天气晴".encode("utf-16"), "text/plain"),
        ("天气晴".encode("utf-8-sig"), "application/octet-stream"),
        ("天气晴".encode("big5"), 'text/plain; charset="Big5"'),
        ("天气晴".encode(), "text/plain; charset=punycode"),
        ("天气晴".encode(), "text/plain; charset=nonsense"),
        ("<meta charset=gbk><p>天气晴".encode("gbk"), "text/html"),
        ("天气晴".encode(), ""),
        ("天气晴".encode("utf-32"), "text/plain"),
    ],
)
def test_text_is_read_in_its_charset_whatever_it_claims(body, content_type):
    assert told(fetched(body, content_type)).content == "天气晴"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("今天天氣晴朗，適合出門散步，記得帶水。", "big5"),
        ("今日の天気は晴れです。散歩に行きましょう。", "shift_jis"),
        ("Déjà vu à la crème brûlée", "latin-1"),
    ],
)
def test_text_without_a_claim_is_read_in_the_encoding_that_fits(text, charset):
    assert told(fetched(text.encode(charset), "text/plain")).content == text


@pytest.mark.parametrize(
    "charset", ["zlib", "rot13", "idna", "unicode_escape", "undefined", "\0", "utf-8" * 20]
)
def test_what_is_no_charset_is_not_used(charset):
    assert decode_text(b"a\\u0041 zlib-", f"text/plain; charset={charset}") == "a\\u0041 zlib-"


@given(
    st.binary(max_size=60),
    st.sampled_from(["", "utf-8", "gbk", "utf-16", "shift_jis", "hz", "iso-2022-jp", "ascii"]),
)
def test_any_bytes_are_some_text(body, charset):
    assert isinstance(decode_text(body, f"text/plain; charset={charset}"), str)


def test_an_empty_answer_says_that_it_was_one():
    assert (
        told(fetched(b"", status=204)).content,
        told(fetched(b" ", "text/plain"), "$.a").content,
    ) == (NOTHING, NOTHING)


def test_a_page_is_told_in_its_words():
    page = """<!doctype html><html><head><title>天气</title><style>p{}</style>
    <script>if (a<b) x("<p>no</p>")</script></head>
    <body><!-- <p>no</p> --><h1>今日&nbsp;天气</h1>
    <p>晴 <b>25</b>&deg;C &lt;ok&gt; 1 < 2<br>风<svg><text>no</text></svg>小</p></body>"""
    assert (
        told(fetched(page, "text/html; charset=utf-8")).content
        == "天气\n今日 天气\n晴 25°C <ok> 1 < 2\n风\n小"
    )


@pytest.mark.parametrize(
    "page", ["<" * 300_000, "<script>" * 40_000, "<!--" * 80_000, "<a b" * 80_000, "&lt" * 100_000]
)
def test_pages_that_were_made_to_be_slow_are_read_all_the_same(page):
    assert isinstance(extract_text(page), str)


# --- JSON -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/problem+json", "text/plain", "text/html", ""]
)
def test_json_is_told_as_it_came_and_is_structured_too(content_type):
    result = told(fetched('{"a": [1, "晴"]}\n', content_type))
    assert (result.content, result.structured_content) == ('{"a": [1, "晴"]}\n', {"a": [1, "晴"]})


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("$.now.text", "晴", "晴"),
        ("$.now.temp", "25.5", 25.5),
        (
            "$.now",
            '{"text": "晴", "temp": 25.5, "gone": null}',
            {"text": "晴", "temp": 25.5, "gone": None},
        ),
        ("$.now.gone", "null", None),
        ("$.days[*].low", "[1, 2]", [1, 2]),
        ("$.days[?@.low == 2].low", "[2]", [2]),
        ("$.days[?@.low == 9]", NO_MATCH, None),
        ("$.elsewhere", NO_MATCH, None),
    ],
)
def test_the_wanted_part_is_told(path, text, value):
    answer = {"now": {"text": "晴", "temp": 25.5, "gone": None}, "days": [{"low": 1}, {"low": 2}]}
    result = told(fetched(json.dumps(answer), "application/json"), path)
    assert (result.success, result.content, result.structured_content) == (True, text, value)


@pytest.mark.parametrize(
    "body",
    [
        "<html>busy</html>",
        "{",
        "NaN",
        '{"a": Infinity}',
        "[1e999]",
        "[" * 5_000,
        "[" * 90 + "]" * 90,
    ],
)
def test_what_is_no_usable_json_fails_where_a_part_is_wanted(body):
    result = told(fetched(body, "application/json"), "$.a")
    assert not result.success
    assert "接口返回的不是 JSON" in result.error_message


@pytest.mark.parametrize("body", ["{", "NaN", "[" * 5_000, "[1e999]", '{"a": Infinity}'])
def test_what_is_no_json_is_text_where_text_is_wanted(body):
    result = told(fetched(body, "application/json"))
    assert (result.success, result.content, result.structured_content) == (True, body, None)


def test_a_part_that_comes_to_too_much_is_a_failure():
    answer: Any = ["x" * 50_000]
    for _ in range(40):
        answer = [answer]
    result = told(fetched(json.dumps(answer)), "$..*")
    assert "过多" in result.error_message


# --- Pictures and other bytes -----------------------------------------------------


@pytest.mark.parametrize("claimed", ["image/png", "image/x-icon", "application/octet-stream", ""])
def test_a_picture_is_what_its_bytes_say(claimed):
    (item,) = told(fetched(PNG, claimed)).content_items
    assert (item.content_type, item.mime_type, base64.b64decode(item.data)) == (
        "image",
        "image/png",
        PNG,
    )


@pytest.mark.parametrize(
    ("body", "claimed", "kind", "mime"),
    [
        (b"<html>not a picture\xff", "image/png", "binary", "image/png"),
        (b"ID3\xff\x00", "audio/mpeg", "audio", "audio/mpeg"),
        (b"%PDF\xff\x00", "application/pdf", "binary", "application/pdf"),
        (b"\xff\x00", "a b/[evil]\x1b", "binary", "application/octet-stream"),
    ],
)
def test_other_bytes_are_named_and_not_told(body, claimed, kind, mime):
    result = told(fetched(body, claimed))
    (item,) = result.content_items
    assert (item.content_type, item.mime_type, item.data) == (kind, mime, "")
    assert f"{len(body)} 字节" in result.content


# --- Failures and secrets ---------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "advice"),
    [(404, ""), (400, ""), (302, ""), (429, "，可以稍后再试"), (503, "，可以稍后再试")],
)
def test_a_status_that_is_no_success_is_a_failure_with_an_excerpt(status, advice):
    result = told(fetched("<p>no <b>such</b> city</p>" + "x" * 5_000, "text/html", status))
    assert not result.success
    assert result.error_message.startswith(
        f"工具执行失败: 接口返回了错误（HTTP {status}）{advice}：no such city"
    )
    assert len(result.error_message) < EXCERPT + 100
    assert result.metadata == {"http_status": status}


@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize(
    ("content_type", "path"),
    [("application/json", ""), ("application/json", "$.h"), ("text/plain", ""), ("text/html", "")],
)
def test_a_server_that_repeats_the_secret_does_not_tell_it(status, content_type, path):
    secret = 'sk-"é/1'
    answer = {"h": {"auth": f"Bearer {secret}", secret: [secret]}, "url": "/?k=sk-%22%C3%A9%2F1"}
    result = told(fetched(json.dumps(answer), content_type, status), path, secret)
    everything = repr(result)
    assert MASK in everything
    assert not any(form in everything for form in ("sk-", "é/1", "u00e9", "%C3"))


def test_an_excerpt_does_not_end_within_a_secret():
    answer = fetched("x" * 995 + "secret-key", "text/plain", 500)
    assert "secre" not in mask_answer_text(answer, SecretMask(["secret-key"]), EXCERPT)


def test_a_picture_that_holds_the_secret_is_thrown_away():
    assert not told(fetched(PNG + b"sk-12345", "image/png"), "", "sk-12345").success
