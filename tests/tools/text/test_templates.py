"""Mock values: names filled in, nothing evaluated, nothing raised."""

import pytest
from hypothesis import given, strategies as st

from tools.text.placeholders import check_mock_template, render_mock


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{city} 的天气", "北京 的天气"),
        ("{city}{city}", "北京北京"),
        ("{{city}}", "{city}"),
        ("{{{city}}}", "{北京}"),
        ('{{"c": "{city}"}}', '{"c": "北京"}'),
        ("{days}/{list}/{flag}", '3/["好", 1]/true'),
        ("[{missing}]", "[]"),
        ("{with-dash} {with space}", "x y"),
        ("", ""),
    ],
)
def test_names_become_arguments(template, expected):
    arguments = {
        "city": "北京",
        "days": 3,
        "list": ["好", 1],
        "flag": True,
        "with-dash": "x",
        "with space": "y",
    }
    assert render_mock(template, arguments) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{city.upper}",
        "{city[0]}",
        "{city!r}",
        "{city:>9}",
        "{}",
        "{ city }",
        "{",
        "}",
        "a } b {city",
    ],
)
def test_nothing_else_is_evaluated(template):
    assert render_mock(template, {"city": "x", "0": "y"}) == template.replace(
        "{city" if template.endswith("{city") else "\0", "{city"
    )


def test_what_an_argument_holds_is_not_a_template():
    assert render_mock("{a}", {"a": "{b}{{", "b": "x"}) == "{b}{{"


@given(st.text("{}ab.!:[0]\n"), st.dictionaries(st.sampled_from("ab"), st.text()))
def test_no_template_raises(template, arguments):
    assert isinstance(render_mock(template, arguments), str)


@given(st.text())
def test_doubled_braces_give_any_text_back(text):
    template = text.replace("{", "{{").replace("}", "}}")
    assert render_mock(template, {}) == text
    assert check_mock_template(template, []) == []


def test_a_good_template_has_no_problems():
    assert check_mock_template("{city} {{x}} {game}", ["city", "game"]) == []


def test_an_unknown_name_is_a_problem_that_lists_the_known_ones():
    [problem] = check_mock_template("{city} {ctiy} {ctiy}", ["city", "days"])
    assert "{ctiy}" in problem
    assert "city, days" in problem


@pytest.mark.parametrize(
    "template", ["{city.upper}", "{city!r}", "{city:>9}", "{city[0]}", "{}", '{"c": 1}']
)
def test_an_expression_is_a_problem(template):
    assert len(check_mock_template(template, ["city"])) == 1


@pytest.mark.parametrize("template", ["a\n}", "a\n{city", "\n{city}}"])
def test_a_brace_that_stands_alone_is_a_problem_of_its_line(template):
    [problem] = check_mock_template(template, ["city"])
    assert "2" in problem
