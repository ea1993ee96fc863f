"""Old plugins' ``@Action``: the model sees a tool like any other."""

from typing import Any

import pytest

from tools.plugin_sdk import Action, ActivationType
from tools.plugin_sdk.calls import Call
from tools.plugin_sdk.declarations import declaration_of
from tools.plugins.handlers import ToolHandler, build_handler
from tools.plugins.provider import convert_plugin_result

CALL = Call("c1", session_id="s1", stream_id="s1", user_id="42", reasoning="他想要")


def made(function: Any, **options: Any) -> ToolHandler:
    with pytest.warns(DeprecationWarning, match=r"@Action\('poke'\)"):
        action = Action("poke", **options)(function)
    declaration = declaration_of(action)
    assert declaration is not None
    return build_handler(action, declaration)


def test_each_parameter_is_a_text_that_need_not_be_given():
    handler = made(lambda **_: None, action_parameters={"target": "who"})
    assert handler.declared["parameters_schema"] == {
        "type": "object",
        "properties": {"target": {"type": "string", "description": "who"}},
    }


def test_all_that_it_said_of_itself_is_one_description():
    handler = made(
        lambda **_: None,
        description="戳一戳",
        action_require=["用户要求时", "气氛活跃时"],
        associated_types=["text", "emoji"],
        action_prompt="不要太频繁",
    )
    lines = [
        "戳一戳",
        "使用场景：",
        "- 用户要求时",
        "- 气氛活跃时",
        "涉及的消息类型：text、emoji",
        "不要太频繁",
    ]
    assert handler.declared["description"].splitlines() == lines


def test_its_origin_is_remembered_where_the_model_does_not_see_it():
    handler = made(
        lambda **_: None,
        activation_type=ActivationType.KEYWORD,
        activation_keywords=["戳"],
        timeout_ms=100,
    )
    assert handler.declared["metadata"] == {
        "timeout_ms": 100,
        "legacy_action": True,
        "legacy_component_type": "ACTION",
        "invoke_method": "plugin.invoke_action",
        "activation_type": "keyword",
        "activation_keywords": ["戳"],
        "activation_probability": 1.0,
        "chat_mode": "normal",
        "parallel_action": False,
    }


def test_its_function_is_called_as_it_was():
    def poke(**kwargs: Any) -> tuple[bool, str]:
        seen.update(kwargs)
        return True, "戳了"

    seen: dict[str, Any] = {}
    value = made(poke, action_parameters={"target": "who"}).call({"target": "小明"}, CALL)
    assert seen["action_data"] == {"target": "小明"}
    assert (seen["target"], seen["stream_id"], seen["chat_id"], seen["reasoning"]) == (
        "小明",
        "s1",
        "s1",
        "他想要",
    )
    assert convert_plugin_result("a.b", "poke", value).content == "戳了"
