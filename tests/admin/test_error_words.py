"""Errors on record in words: what happened, what to do, and the text itself."""

import pytest
from django.template import Context, Template
from django.utils import translation

from agent.pages.error_words import explain_error

MODEL = "the endpoint answered "
LOST = "the endpoint cannot be reached: "


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (MODEL + '401: {"error": {"message": "Authentication Fails"}}', "refuses the key"),
        (MODEL + '402: {"error": {"message": "Insufficient Balance"}}', "out of money"),
        (MODEL + '403: {"message": "forbidden"}', "refuses the key"),
        (MODEL + "404: 404 page not found", "no OpenAI-compatible API"),
        (MODEL + '404: {"error": {"message": "model `x` does not exist"}}', "not know this model"),
        (MODEL + '429: {"error": {"message": "Rate limit reached"}}', "asked too often"),
        (MODEL + '429: {"error": {"code": "insufficient_quota"}}', "out of money"),
        (MODEL + "503: upstream gone; there was no time left to ask again", "trouble itself"),
        (MODEL + '400: {"error": {"message": "maximum context length is 4096"}}', "window"),
        (MODEL + '400: {"error": {"message": "Content Exists Risk"}}', "content filter"),
        (MODEL + "403 with a web page “Blocked”: <html>", "no OpenAI-compatible API"),
        (MODEL + "302: it sends to https://x.example; is that a page", "no OpenAI-compatible"),
        ("all its 2 keys were refused; the last one: " + MODEL + "401: no", "refuses the key"),
        ("the answer is not JSON: pong", "cannot be read"),
        ("the answer is not JSON but a web page “Home”: is", "a web page"),
        ("no answer from the model within 60 s", "time limit"),
        (LOST + "its certificate is not trusted (self-signed): x", "certificate is not trusted"),
        (LOST + "Cannot connect to host a:443 [Name or service not known]", "host was not found"),
        (LOST + "Connect call failed ('127.0.0.1', 1)", "refused"),
        (LOST + "something new", "trouble itself"),
        ("the budget “day” is used up", "budget “day” did not allow it."),
        ("the budget “day” has nothing left", "it: nothing is left."),
        (
            "the budget “day” has 2,614 tokens left, and a call may take 5,700 tokens",
            "budget “day” did not allow it: 2,614 tokens left, and a call may take 5,700 tokens.",
        ),
        ("the budget “d” has ¥1.20 left, which calls under way may take", "it: ¥1.20 left, which"),
        (
            MODEL + '402: {"error": {"code": "insufficient_quota"}}\nthen: ' + LOST + "refused",
            "out of money",
        ),
        ("All connection attempts failed", "could not be made"),
        ("HTTP 401 Unauthorized", "refuses the key or token"),
        ("[Errno 113] No route to host", "no way through the network"),
        ('Timeout: NTEvent serviceAndMethod EventRet: {"result": 120}', "muted"),
        ("retcode 1404", "does not know this action"),
        ("retcode 200", "without saying why"),
        ("no answer within 60 s", "did not answer in time"),
    ],
)
def test_a_known_error_is_a_sentence_with_its_text_kept(raw, sentence):
    with translation.override("en"):
        told = explain_error(raw)
    assert sentence in told.sentence
    assert told.raw == raw


@pytest.mark.parametrize("raw", ["群已解散", "plain unknown words", "401 apples", "result: 1200"])
def test_an_unknown_text_is_its_own_sentence(raw):
    told = explain_error(raw)
    assert (told.sentence, told.raw) == (raw, "")


def test_a_sentence_of_the_program_is_translated_and_nothing_is_folded():
    with translation.override("zh-hans"):
        told = explain_error("the account is not connected")
    assert told.sentence == "账号没有连接"
    assert not told.raw


def test_a_template_escapes_what_was_recorded_and_shows_overrides():
    page = Template("{% load error_words %}{{ raw|error_words }}|{{ none|error_words }}")
    shown = page.render(Context({"raw": "HTTP 500 <script>\u202e", "none": None}))
    assert "&lt;script&gt;" in shown
    assert "\u202e" not in shown
    assert shown.endswith("|")


def test_of_several_endpoints_the_cause_of_the_first_one_stands_first():
    first = MODEL + '429: {"error": {"code": "insufficient_quota"}}'
    raw = f"{first}\nthen: {LOST}Connect call failed\nthen: {LOST}Connect call failed"
    with translation.override("en"):
        told = explain_error(raw)
        assert told.sentence.startswith(explain_error(first).sentence)
        assert told.advice == explain_error(first).advice
        assert told.sentence.count("refused") == 1


def test_a_budget_that_stops_says_so_in_the_language_of_the_reader():
    raw = "the budget “天” has 2,614 tokens left, and a call may take 5,700 tokens"
    with translation.override("zh-hans"):
        assert "剩 2,614 tokens" in explain_error(raw).sentence
        for text in (raw, "the budget “天” is used up"):
            assert "用完" not in explain_error(text).sentence
            assert "budget" not in explain_error(text).sentence
