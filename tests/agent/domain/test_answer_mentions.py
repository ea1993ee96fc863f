"""Names in an answer become mentions of the one they mean, and of nobody else."""

from time import thread_time

import pytest
from hypothesis import given, strategies as st

from agent.domain.answer_parts import MOST_MENTIONS, split_mentions
from agent.domain.types import MessagePart

MEMBERS = {
    "张三": "20001",
    "张三丰": "20002",
    "Ann": "20003",
    "A B": "20004",
    "小明": "20005",
    "李四": "",  # two are called so
    "@小号": "20006",
    "全体成员": "20007",
    "all": "20008",
    "全体": "20009",
    "vue": "20010",
    "20001": "20001",
    "nobody": "all",
}


def told(text: str, members: dict[str, str] = MEMBERS) -> list[str]:
    """The parts as words, mentions as numbers behind a sign."""
    return [part.text or f"→{part.mention_user_id}" for part in split_mentions(text, members)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("@张三 看", ["→20001", " 看"]),
        ("请@张三看", ["请", "→20001", "看"]),
        ("@张三，@Ann: hi", ["→20001", "，", "→20003", ": hi"]),
        ("@张三丰你好", ["→20002", "你好"]),
        ("@Ann你好", ["→20003", "你好"]),
        ("@Ann.", ["→20003", "."]),
        ("@A B!", ["→20004", "!"]),
        ("@@小号 hi", ["→20006", " hi"]),
        ("好的...@小明2岁", ["好的...", "→20005", "2岁"]),
        ("[@20001] hi", ["→20001", " hi"]),
        ("[@张三丰]", ["→20002"]),
        ("@20001", ["→20001"]),
    ],
)
def test_a_name_that_means_one_member_is_a_mention(text, parts):
    assert told(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@",
        "张三",
        "@李四 hi",
        "@Anna",
        "@Ann1",
        "@王五",
        "@ 张三",
        "[@99999]",
        "@200011",
        "@全体成员",
        "@全体成员请看",
        "@all",
        "@ALL hi",
        "[@all]",
        "[@nobody]",
        "@nobody",
        "[@全体成员]",
        "@李四丰",
        "bob@Ann",
        "张三@vue.com",
        "https://x.invalid/@Ann/1",
        "www.x.invalid/@Ann",
        "`@Ann`",
        "```\n@Ann\n```",
        "```py\n@Ann never closed",
        "~~~\n@Ann\n~~~",
    ],
)
def test_nobody_is_mentioned_where_nobody_certain_is_meant(text):
    assert told(text) == ([text] if text else [])


def test_code_hides_names_in_it_and_no_others():
    assert told("@Ann `@Ann` @张三\n```\n@Ann\n```\n@Ann") == [
        "→20003",
        " `@Ann` ",
        "→20001",
        "\n```\n@Ann\n```\n",
        "→20003",
    ]


def test_a_name_after_an_address_is_a_name_again():
    assert told("https://x.invalid/a请@张三") == ["https://x.invalid/a请", "→20001"]


def test_an_answer_that_names_everybody_mentions_some():
    parts = split_mentions("@张三 " * 100, MEMBERS)
    assert sum(part.type == "mention_user" for part in parts) == MOST_MENTIONS


@given(st.text(alphabet="@张三丰李四Ann[]`~. 2001/", max_size=60))
def test_the_parts_say_what_the_text_says(text):
    names: dict[str, list[str]] = {}
    for name, user_id in MEMBERS.items():
        names.setdefault(user_id, []).extend([f"@{name}", f"[@{name}]", f"[@{user_id}]"])
    rest = text
    for part in split_mentions(text, MEMBERS):
        spelled = [part.text] if part.type == "plain" else names[part.mention_user_id]
        said = next(one for one in sorted(spelled, key=len, reverse=True) if rest.startswith(one))
        rest = rest.removeprefix(said)
    assert rest == ""


@pytest.mark.parametrize("text", ["@" * 100_000, "[@" * 50_000, "`@张" * 30_000, "@Anna" * 20_000])
def test_a_long_answer_takes_little_time(text):
    members = {f"成员{number}": str(number) for number in range(1, 500)}
    began = thread_time()
    assert split_mentions(text, members | MEMBERS) == [MessagePart("plain", text=text)]
    assert thread_time() - began < 2
