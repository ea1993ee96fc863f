"""Secrets are hidden in every form in which requests and answers write them."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, strategies as st

from tools.contract import ToolFailed
from tools.secrets.masked import MASK, SecretMask, SecretValues

AWKWARD = 'p@ss "wörd"/+&<密>\\ 1'


@pytest.mark.parametrize(
    "form",
    [
        AWKWARD,
        quote(AWKWARD, safe=""),
        re.sub("%..", lambda code: code[0].lower(), quote(AWKWARD, safe="")),
        base64.b64encode(AWKWARD.encode()).decode().rstrip("="),
        quote_plus(AWKWARD),
        json.dumps(AWKWARD)[1:-1],
        json.dumps(AWKWARD, ensure_ascii=False)[1:-1],
        html.escape(AWKWARD),
    ],
)
def test_a_secret_is_hidden_in_every_spelling(form):
    assert SecretMask([AWKWARD]).text(f"<a>{form}</a>") == f"<a>{MASK}</a>"


def test_the_longer_of_two_secrets_is_hidden_whole():
    assert SecretMask(["key", "key-2024"]).text("key-2024, key") == f"{MASK}, {MASK}"


def test_json_is_masked_in_names_texts_and_numbers():
    value = {"sk-1": ["a sk-1 b", {"x": 12345678, "y": 1, "on": True, "n": None}]}
    assert SecretMask(["sk-1", "12345678"]).json(value) == {
        MASK: [f"a {MASK} b", {"x": MASK, "y": 1, "on": True, "n": None}]
    }


def test_without_secrets_nothing_is_touched():
    mask = SecretMask([""])
    assert not mask
    assert mask.text("abc") == "abc"
    assert not mask.hides(b"abc")


@given(
    st.text(min_size=4, max_size=30).filter(lambda secret: secret.strip() and "•" not in secret),
    st.text(max_size=20),
)
def test_no_json_answer_shows_a_secret(secret, around):
    told = SecretMask([secret]).json(json.loads(json.dumps({"a": around + secret + around})))
    assert secret not in told["a"]


def test_what_cannot_be_read_any_more_says_what_to_do():
    secrets = SecretValues({"GOOD": "v"}, frozenset({"OLD"}))
    assert secrets["GOOD"] == "v"
    with pytest.raises(ToolFailed, match="密钥 OLD 已无法读取"):
        secrets["OLD"]


def test_secrets_do_not_show_in_a_repr():
    assert "s3cret" not in repr(SecretValues({"A": "s3cret"}))
