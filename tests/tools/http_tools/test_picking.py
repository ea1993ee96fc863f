"""The wanted part of an answer, and paths and answers that were made to be slow."""

from typing import Any

import pytest

from tools.http_tools.jsonpath import NODES, TooManyNodesError, compile_jsonpath

SHOP: dict[str, Any] = {
    "items": [{"name": "茶", "price": 8}, {"name": "米", "price": 3, "old": None}],
    "天气": "晴",
}


@pytest.mark.parametrize(
    ("path", "found", "is_single"),
    [
        ("$", [SHOP], True),
        ("$.天气", ["晴"], True),
        ("$.items[0].name", ["茶"], True),
        ("$['items'][-1].old", [None], True),
        ("$.items[*].name", ["茶", "米"], False),
        ("$..price", [8, 3], False),
        ("$.items[?@.price < 5].name", ["米"], False),
        ("$.items[?length(@.name) == 1 && @.old == null].price", [3], False),
        ("$.nowhere", [], True),
    ],
)
def test_a_path_leads_to_its_values(path, found, is_single):
    made = compile_jsonpath(path)
    assert (made.apply(SHOP), made.is_single) == (found, is_single)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "items",
        "$.items[",
        "$.a | $.b",
        "$[?match(@.a, '(a+)+$')]",
        "$[?search(@.a, 'x')]",
        "$[?@.a =~ /(a+)+$/]",
        "$[?@..a]",
        "$[?count($..*) > 1]",
        "$[?@[?@.a]]",
        "$" + "[?@" * 200 + "]" * 200,
        "(" * 500,
    ],
)
def test_a_path_that_is_broken_or_could_be_slow_is_refused_with_a_reason(path):
    with pytest.raises(ValueError, match=r"\S"):
        compile_jsonpath(path)


@pytest.mark.parametrize(
    "path", ["$..*..*", "$..[*]..[*]..[*]", "$[0,0,0,0][0][0][0][0][?@ > 1]", "$..[?@ == 1]"]
)
def test_an_answer_with_more_nodes_than_are_looked_at_is_given_up(path):
    nested: Any = list(range(NODES // 2))
    for _ in range(5):
        nested = [nested, nested]
    with pytest.raises(TooManyNodesError):
        compile_jsonpath(path).apply(nested)


def test_an_answer_that_is_nested_too_deep_is_given_up():
    nested: Any = 1
    for _ in range(500):
        nested = {"a": nested}
    with pytest.raises(TooManyNodesError):
        compile_jsonpath("$..a").apply(nested)


def test_one_answer_takes_nothing_from_the_next():
    made = compile_jsonpath("$[*]")
    for _ in range(3):
        assert len(made.apply(list(range(NODES // 2)))) == NODES // 2
