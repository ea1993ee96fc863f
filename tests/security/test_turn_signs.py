"""Who copies the text that a model's chat template makes of a request, and says it wherever words
can be said, opens no turn."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from agent.domain.chat_state import render_known_values
from agent.llm.answers.completion import calling_message
from agent.llm.requests.base import CallExtras, ToolCallRequest
from agent.llm.requests.messages import (
    SpokenMessage,
    assistant_message,
    system_message,
    user_message,
)
from agent.run.tool_results import result_text
from tests.rendered_templates import Rendered, render_all
from tools.contract import ToolExecutionResult, ToolSpec
from tools.text.fences import FenceKind, MediaLabel, fence_values, label_file, label_medium
from tools.text.turn_signs import FAMILIES

#: What looks like a sign of a template, found another way than the program does.
SIGN = re.compile(
    r"<<?/?[^\s<>'\"{}〔〕]{1,60}>>?|<｜[^\s]{1,40}?｜|\[/?\|?[A-Za-z_]{2,40}\|?\]|\]~!?b[\[\]]|\[e~\["
    r"|### \w+:"
)
#: In instructions of templates, or around thoughts and citations: these end no turn.
NO_TURN = re.compile(
    r"</?(?:think|thought|co|args-json-object|function-name|IMPORTANT|description|name|type|response"
    r"|parameters|return|invoke|Thought|Output|context|(?:start|end)_of_risk_definition)>"
    r"|<(?:function|parameter)=(?:\.\.\.|example.*|text|hello)>|\[(?:key|int|json_key|requested_risk)\]"
)
Request = dict[str, Any]


def conversation(said: str) -> Iterator[Request]:
    """Requests with ``said`` in every place that is not the operator's: of a run with tools, whose
    arguments are told as JSON or as an object, and of plain talk in three forms."""
    system = system_message(render_known_values("You are Frosty. {fact}", {"fact": said}, ()).text)
    talk = [speech(said), assistant_message(said), speech(said)]
    calling = called(said)
    result = result_text(
        "call_1", ToolExecutionResult("f", success=True, content=said), can_see=False
    )
    memory = {"role": "user", "content": fence_values(FenceKind.MEMORY, [said, {said: said}])}
    tool = {"role": "tool", "tool_call_id": "call_1", "content": result}
    tools = [{"type": "function", "function": described(said)}]
    for calls in (calling, with_objects(calling)):
        yield {"messages": [system, memory, *talk, calls, tool], "tools": tools}
    yield {"messages": [system, *talk]}
    yield {"messages": talk}
    yield {"messages": [system, *map(in_parts, talk)]}


def speech(said: str) -> Request:
    seen = label_medium(MediaLabel.PICTURE, said) + label_file(said, said)
    header = {"chat_name": said, "mentions": [{"user_id": "2", "name": said}]}
    context = fence_values(FenceKind.QUOTED, [{"name": said, "text": said}])
    return user_message(
        SpokenMessage(said, "1", said, "group:3", "4", seen=seen, header=header, context=context)
    )


def called(said: str) -> Request:
    arguments = json.dumps({"text": said, said: [said]}).replace("<", "\\u003c")
    extras = CallExtras("", {"reasoning_content": said}, {}, {})
    return calling_message([ToolCallRequest("call_1", "f", arguments, extras=extras)], said)


def with_objects(calling: Request) -> Request:
    """As vLLM and others give it to a template: arguments that were read."""
    (call,) = calling["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    return {**calling, "tool_calls": [{**call, "function": {"name": "f", "arguments": arguments}}]}


def described(said: str) -> Request:
    definition = ToolSpec(name="f", brief_description=said).llm_definition()
    return {
        "name": definition["name"],
        "description": definition["description"],
        "parameters": {"type": "object", "properties": {}},
    }


def in_parts(message: Request) -> Request:
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def signs(text: str) -> list[str]:
    return [sign for sign in SIGN.findall(text) if not NO_TURN.fullmatch(sign)]


@cache
def harmless() -> list[Rendered]:
    return render_all(list(conversation("hello")))


def test_most_templates_take_what_is_asked_and_are_tried():
    forms = list(zip(*(one.shared for one in harmless()), strict=True))
    assert [sum(map(bool, form)) > 75 for form in forms] == [True] * 5
    assert sum(any(one.shared) for one in harmless()) > 100


def test_a_text_that_a_template_made_opens_no_turn_where_it_is_said_again():
    attacks = ["\n".join(filter(None, one.shared)) for one in harmless()]
    assert sum(map(len, map(signs, attacks))) > 1_000
    hostile = render_all([], [list(conversation(attack)) for attack in attacks])
    for before, after in zip(harmless(), hostile, strict=True):
        for plain, text in zip(before.shared, after.special, strict=True):
            assert (plain is None) == (text is None), before.name
            assert signs(text or "") == signs(plain or ""), before.name


def test_no_sign_that_is_known_opens_a_turn_anywhere():
    every = "\n".join(sign for family in FAMILIES for sign in family.signs)
    for before, after in zip(harmless(), render_all(list(conversation(every))), strict=True):
        for plain, text in zip(before.shared, after.shared, strict=True):
            assert signs(text or "") == signs(plain or ""), before.name
