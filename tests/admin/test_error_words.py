"""Errors on record in words: what happened, what to do, and the text itself."""

import pytest
from django.template import Context, Template
from django.utils import translation

from agent.admin.error_words import explain_error

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
        ("the budget “day” is used up", "budget “day”"),
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
