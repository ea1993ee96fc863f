"""What plugins declare, on its way to the model: nothing of it is believed."""

import pytest

from tools.contract import TOOL_NAME
from tools.plugins.rows import MOST_TOOLS, UnusableTools, build_plugin_tools
from tools.registry.execution import check_declaration

EMPTY = {"type": "object", "properties": {}}


def declared(name="look_up", **said):
    return {
        "name": name,
        "description": "Look it up.",
        "parameters_schema": EMPTY,
        "metadata": {},
        **said,
    }


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("look_up", "look_up"),
        ("look up!", "look_up"),
        ("x" * 100, "x" * 64),
        ("查weather", "weather"),
    ],
)
def test_a_name_is_reduced_to_what_models_take(name, short):
    (tool,) = build_plugin_tools("test.p", [declared(name)])
    assert (tool.spec.name, tool.name) == (short, name)
    assert TOOL_NAME.fullmatch(tool.spec.name)


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        (declared("查"), "nothing can be used"),
        (declared(7), "nothing can be used"),
        ("look_up", "nothing can be used"),
        (declared(parameters_schema={"type": "array"}), "look_up: Its schema is of another type"),
        (declared(metadata={"timeout_ms": -1}), "timeout_ms is -1"),
        (declared(metadata={"timeout_ms": "soon"}), "timeout_ms is soon"),
    ],
)
def test_one_tool_that_cannot_be_offered_refuses_them_all(declaration, words):
    with pytest.raises(UnusableTools, match=words):
        build_plugin_tools("test.p", [declared("other"), declaration])


@pytest.mark.parametrize(
    "names", [["a", "a"], ["a b", "a_b"], [f"t{n}" for n in range(MOST_TOOLS + 1)]]
)
def test_tools_that_are_too_many_or_have_one_name_are_refused(names):
    with pytest.raises(UnusableTools):
        build_plugin_tools("test.p", [declared(name) for name in names])


def test_of_metadata_only_what_is_known_counts():
    said = {
        "core_tool": True,
        "visibility": "hidden",
        "requires_approval": 1,
        "hooks": "x",
        "default_config": {},
        "timeout_ms": 1500,
    }
    (tool,) = build_plugin_tools("test.p", [declared(metadata=said)])
    assert tool.spec.metadata == {
        "plugin_id": "test.p",
        "visibility": "hidden",
        "core_tool": True,
        "timeout_seconds": 1.5,
    }


def test_an_old_action_is_remembered_as_one():
    said = {
        "legacy_action": True,
        "legacy_component_type": "ACTION",
        "activation_keywords": ["hi\n"],
        "other": 1,
    }
    (tool,) = build_plugin_tools("test.p", [declared(metadata=said)])
    wanted = {
        "plugin_id": "test.p",
        "legacy_action": True,
        "legacy_component_type": "ACTION",
        "activation_keywords": ["hi"],
    }
    assert tool.spec.metadata == wanted


def test_words_are_cleaned_and_cut():
    (tool,) = build_plugin_tools(
        "test.p", [declared(description="a\x00\u202eb" + "c" * 9000, title="one\ntwo")]
    )
    assert tool.spec.description.startswith("abc")
    assert len(tool.spec.description) == 4000
    assert (tool.spec.title, check_declaration(tool.spec)) == ("one two", "")


def test_a_tool_that_is_declared_again_is_the_same_object():
    before = build_plugin_tools("test.p", [declared("a"), declared("b")])
    after = build_plugin_tools("test.p", [declared("a"), declared("b", description="new")], before)
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, False]
