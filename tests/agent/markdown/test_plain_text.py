"""Markdown as plain text."""

import time

import pytest

from agent.markdown.plain_text import to_plain

UNCHANGED = (
    *(
        "",
        "你好",
        "\ufeff你好\t a  b",
        "a\n\n\nb  \n c",
        "　　从前有座山\n　　山里有座庙",
        "甲\r\n乙",
    ),
    *("2*3*4=24，5*6*7", "2**3**4", "f(*args, **kwargs)", "snake_case __init__ _x", "a * b * c"),
    *("https://a.com/_foo_/bar*baz*", "[CQ:image,file=_a_,url=*x*]", "x[0](注意)", "[图片]"),
    *(">_< 好的", "(*^▽^*) o(*￣▽￣*)ブ _(:з」∠)_ (*´▽`*) T_T ^_^", "好的~~晚安~~", "👨‍👩‍👧👍🏽*"),
    *(
        "[张三]: 你好\n[李四]: 嗯",
        "- a\n- b\n   - c\n\n1) x\n2) y",
        "10\n+ 5\n= 15",
        "    缩进 *a*",
    ),
    *("从$5到$10，$HOME", r"\d+\.\d+ C:\Users\x", "#话题 #1", "<name> & b &c; 1<2", "-5\n-6"),
    *("$a_1*b*c_2$", "$$\na\n+ b\n- c\n$$", r"\(x_1*y*z\)"),
)
CHANGED = {
    "# 标题 **粗** #": "标题 粗",
    "**重点：**和*斜*、~~删~~，**“引号”**说明，***都***": "重点：和斜、删，“引号”说明，都",
    "`a*b*` ``c`d``": "a*b* c`d",
    "* 一\n* 二\n    * 三\n\n1. **甲**\n   ```py\n   x = `1`\n   ```\n1. 乙": (
        "• 一\n• 二\n  • 三\n\n1. 甲\n  x = `1`\n2. 乙"
    ),
    "- [ ] 待办\n- [x] 完成": "☐ 待办\n☑ 完成",
    "[名](https://a.com/x_y_z) <https://b.com> [https://c.d](https://c.d)": (
        "名 (https://a.com/x_y_z) https://b.com https://c.d"
    ),
    "![图](https://p.q/r.png)": "图 (https://p.q/r.png)",
    "|名|价<br>元|\n|:-|-:|\n|果|**5**|\n||[x](http://a.b)|": "名 | 价 元\n果 | 5\n | x (http://a.b)",
    "> 引用 **粗**\n> 二\n>> 三": "▎引用 粗\n▎二\n▎▎三",
    "上\n---\n下": "上\n────────\n下",
    "甲  \n乙\\\n丙": "甲\n乙\n丙",
    r"&lt;b&gt; &amp; \*星\* \\x": r"<b> & *星* \\x",
    "<b>粗</b> H<sub>2</sub>O <br/>行": "粗 H2O \n行",
    "前 `x`\n\n\n　　空\n```\n# 非\n\n  *a*\n```\n后": "前 x\n\n\n　　空\n# 非\n\n  *a*\n后",
}
HOSTILE = {
    "quotes": ">" * 100_000,
    "deep quotes": "> " * 50_000 + "x",
    "brackets": "[" * 100_000,
    "pictures": "![" * 50_000,
    "stars": "*a " * 25_000 + "a* " * 8_000,
    "backticks": "`a" * 50_000,
    "formulae": r"\(" * 50_000,
    "open formulae": "$$a\n" * 25_000,
    "addresses": "a://" * 25_000,
    "nested list": "\n".join("  " * depth + "- a" for depth in range(400)),
    "underscores": "__a " * 12_000 + "a__ " * 12_000,
}


@pytest.mark.parametrize("text", UNCHANGED)
def test_a_text_without_markdown_is_the_same_to_the_byte(text):
    assert to_plain(text) == text


@pytest.mark.parametrize("text", CHANGED)
def test_markdown_reads_well_without_its_marks(text):
    assert to_plain(text) == CHANGED[text]


def test_a_long_answer_is_read_quickly():
    text = "## 标题\n**好**的`x` 文字 [a](http://x.y/z)，普通的话。\n- 一\n- 二\n\n" * 2_000
    begun = time.process_time()
    plain = to_plain(text[:100_000])
    assert time.process_time() - begun < 2
    assert "**" not in plain


@pytest.mark.parametrize("name", HOSTILE)
def test_no_input_takes_long(name):
    begun = time.process_time()
    to_plain(HOSTILE[name])
    assert time.process_time() - begun < 3


def test_nothing_of_a_text_that_is_nested_too_deep_is_lost():
    text = "> " * 200 + "**x**"
    assert to_plain(text) == text
