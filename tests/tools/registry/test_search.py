"""Finding tools by words: the scores, Chinese without spaces, and queries of any size."""

import pytest

from tools.contract import ToolSpec
from tools.registry.offers import TERM_LIMIT, query_terms, rank_tools, score_tool
from tools.text.search_terms import normalize_text

TOOLS = [
    ToolSpec(name="get_weather", description="查询指定城市的天气预报"),
    ToolSpec(name="get_forecast", description="weather of the coming days"),
    ToolSpec(name="repo_list", description="列出 GitHub 仓库"),
    ToolSpec(name="mail", description="发送电子邮件"),
]


@pytest.mark.parametrize(
    ("query", "points"),
    [
        ("get_weather", 1000 + 300 + 200 + 100 + 2 * (25 + 10)),
        ("GET_Weather", 1000 + 300 + 200 + 100 + 2 * (25 + 10)),
        ("get", 300 + 200 + 100 + 25 + 10),
        ("weather", 200 + 25),
        ("get  weather", 2 * 25 + 10),
        ("reads", 100 + 10),
        ("weather-reads", 25 + 10),
        ("get get", 25 + 10),
        ("snow", 0),
        (" \t\n", 0),
        ("", 0),
        ("_-", 0),
    ],
)
def test_the_scores_of_all_that_fits_add_up(query: str, points: int):
    described = "calls get_weather and reads" if "_" in query else "get and reads"
    wanted = normalize_text(query)
    assert score_tool(wanted, query_terms(wanted), "get_weather", described) == points


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("get weather_now-please", ["get", "weather", "now", "please"]),
        ("天气", ["天气"]),
        ("查天气预报", ["查天气预报", "查天", "天气", "气预", "预报"]),
        ("我想查一下github仓库", ["我想查一下github仓库", "github", "仓库"]),
        ("café 猫", ["café", "猫"]),
    ],
)
def test_what_is_written_without_spaces_is_looked_for_in_pairs(query: str, terms: list[str]):
    assert query_terms(normalize_text(query)) == terms


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("帮我看看明天的天气", ["get_weather"]),
        ("ＷＥＡＴＨＥＲ", ["get_weather", "get_forecast"]),
        ("我想查一下github仓库", ["repo_list"]),
        ("写邮件", ["mail"]),
        ("请问你可以帮我吗", []),
        ("量子", []),
    ],
)
def test_tools_are_found_in_the_words_people_use(query: str, found: list[str]):
    assert [tool.name for tool in rank_tools(query, TOOLS)] == found


def test_equal_scores_are_in_the_order_of_the_names():
    tools = [ToolSpec(name=name, description="a map") for name in ("c", "a", "b", "map")]
    assert [tool.name for tool in rank_tools("map", tools)] == ["map", "a", "b", "c"]


def test_a_query_of_any_length_has_a_bounded_number_of_terms():
    assert len(query_terms(normalize_text("".join(map(chr, range(0x4E00, 0x5E00)))))) == TERM_LIMIT
    assert [tool.name for tool in rank_tools("get_weather " + "x" * 10**6, TOOLS)] == [
        "get_weather",
        "get_forecast",
    ]
