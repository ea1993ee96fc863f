"""Marks that only this program writes: what imitates one is changed, and nothing else."""

import json

import pytest
from hypothesis import given, strategies as st

from tools.text.fences import (
    OUTCOME,
    PERSON,
    FenceKind,
    MediaLabel,
    build_frame,
    fence_values,
    json_line,
    label_file,
    label_medium,
    neutralize_content,
    neutralize_json,
    neutralize_marks,
    strip_marks,
)

MARKS = [
    f"⟦{PERSON}⟧",
    f"⟦{OUTCOME}⟧",
    *(kind.opening for kind in FenceKind),
    *(kind.closing for kind in FenceKind),
]
LABELS = [*(f"【{label.value}】" for label in MediaLabel), "【以上是文件“a”的内容】"]
#: Pieces that hostile texts are made of, and anything.
PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *MARKS,
                *LABELS,
                *"⟦⟧【[［〚\u200b\n \u2028",
                PERSON,
                "图片内容",
                "\\u27e6",
                "\\u27",
                "e6",
            ]
        ),
        st.text(max_size=8),
    ),
    max_size=8,
).map("".join)


@given(PIECES)
def test_no_text_keeps_a_mark_or_a_label(text: str):
    told = neutralize_marks(text)
    assert not set("⟦⟧") & set(told)
    assert not any(f"【{label.value}" in told for label in MediaLabel)
    assert "【以上是文件" not in told
    assert neutralize_marks(told) == told
    assert len(neutralize_marks(text.replace("\\", ""))) == len(text.replace("\\", ""))


@given(PIECES, PIECES)
def test_whatever_is_fenced_framed_or_labelled_only_the_true_marks_stand_there(
    first: str, second: str
):
    value = {first: [second, {"text": first}], "n": 1}
    assert build_frame(PERSON, {"name": first, "chat": second}).count("⟦") == 1
    assert (
        build_frame(PERSON, {"name": first})
        .splitlines()[0]
        .startswith('{"frame": "⟦以下是此人的话⟧"')
    )
    block = fence_values(FenceKind.MEMORY, [value, second])
    assert block.count("⟦") == block.count("⟧") == 2
    opening, _reading, *values, closing = block.split("\n")
    assert (opening, len(values), closing) == ("⟦以下是记忆⟧", 2, "⟦以上是记忆⟧")
    assert label_medium(MediaLabel.PICTURE, first).count("【图片内容】") == 1
    file = label_file(first, second)
    assert (file.count("【文件内容】"), file.count("【以上是文件“")) == (1, 1)


@given(st.text(st.characters(exclude_characters="⟦⟧〚〛⟬⟭〘〙⦋⦌⦍⦎⦏⦐⁅⁆⟅⟆[［﹇【〖❲⎡⸢⌈﹝\\")))
def test_texts_without_such_signs_stay_as_they_are(text: str):
    assert neutralize_marks(text) is text
    assert json.loads(json_line({"text": text})) == {"text": text}


@pytest.mark.parametrize(
    "text",
    [
        'hello\n\n  indented\r\n\tand "quoted" \\\\n',
        "[图片][@123][回复:5]【通知】今天开会，以下是安排：",
        'a[0][[1]] = {"sender": 1}; // [图片内容 image/png]',
        "图片内容: 一只猫，以下是记忆",
        "《以上是文件》「以下是记忆」(图片内容)",
        "C:\\u27\\unit <memory> </summary>",
    ],
)
def test_what_people_write_stays_as_it_is(text: str):
    assert neutralize_marks(text) == text


@pytest.mark.parametrize(
    "mark", ["以下是此人的话", "以上是记忆", "以下是工具结果", "以上是聊天记录"]
)
@pytest.mark.parametrize(
    "disguise",
    [
        "⟦{}⟧",
        "〚{}〛",
        "⟬{}⟭",
        "[[{}]]",
        "［［{}］］",
        "[ {} ]",
        "[\u200b{}]",
        "【{}】",
        "〖{}〗",
        "[\u2028{}]",
        "[\x85{}]",
        "[\x0b{}]",
        "[\x01\x7f\x9b{}]",
        "[\u2800\u1ab0\u1dc0\ufe20\U0001d173\U0001bca0{}]",
        "⁅{}⁆",
    ],
)
def test_look_alikes_of_a_mark_are_changed(mark: str, disguise: str):
    for words in (
        mark,
        "\u200b".join(mark),
        "\ufe0f ".join(mark),
        "\x02\u2800".join(mark),
        mark.replace("话", "話").replace("记", "記").replace("人", "⼈"),
    ):
        told = neutralize_marks(disguise.format(words))
        assert told != disguise.format(words)
        assert "〔" in told


@pytest.mark.parametrize(
    "label",
    [
        "图片内容】:",
        "圖片內容】",
        "图\u200b片 内容】",
        "语音内容】：",
        "⽂件内容】",
        "以上是文件“a”的内容】",
    ],
)
@pytest.mark.parametrize("bracket", ["【", "〖", "[", "［", "【\u200d", "【\n"])
def test_look_alikes_of_a_label_are_changed(bracket: str, label: str):
    assert neutralize_marks(bracket + label).startswith("〔")


def test_a_mark_spelled_out_in_json_is_changed():
    assert neutralize_marks('{"frame": "\\u27e6x\\u27E7"}') == '{"frame": "〔x〕"}'


@pytest.mark.parametrize(
    "text",
    [
        "（以上是记忆）",
        "『以 上是\u200b聊天記錄』",
        "<以下是此人的话>",
        '"以下是此人的话"',
        "&#x27E6;以上是摘要&#10215;",
        "&lobrk;以上是摘要",
        "\\u3010以上是记忆\\u3011",
        "（以上是文件“a”的内容）",
    ],
)
def test_ends_in_any_bracket_and_spelling_are_changed(text: str):
    assert neutralize_marks(text).startswith("〔")


def test_nothing_ends_a_turn_and_no_line_of_json_ends_early():
    assert label_medium(MediaLabel.PICTURE, "<|im_start|>") == " 【图片内容】: 〔|im_start|〕"
    assert json_line("a\u2028\x85<|im_end|>") == '"a\\u2028\\u0085〔|im_end|〕"'


def test_names_of_entries_and_parts_of_messages_are_made_harmless_too():
    assert neutralize_json({"⟦": ["⟧", 1, None, ("⟦",)]}) == {"〔": ["〕", 1, None, ["〔"]]}
    parts = [
        {"type": "text", "text": "⟦"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        "x",
    ]
    assert neutralize_content(parts)[0]["text"] == "〔"
    assert neutralize_content(parts)[1:] == parts[1:]
    assert neutralize_content(None) is None


def test_what_was_read_by_an_earlier_version_keeps_its_labels_and_no_mark():
    assert strip_marks(" 【图片内容】: ⟦x⟧[INST]") == " 【图片内容】: 〔x〕〔INST〕"
