"""An answer in the pieces that are sent."""

import asyncio

import pytest
from PIL import Image

from agent.domain.manners import MarkdownStyle
from agent.markdown import answer_pieces, drawing_packages
from agent.markdown.answer_pieces import AnswerPiece, prepare_answer

TABLE = "|名称|价格|\n|-|-|\n|苹果 ✅|5|"
CODE = "```python\ndef f(x):\n    return '你好'\n```"
FORMULA = r"$$\text{速度}=\frac{s}{t}$$"


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.RECEIVED_DIR = tmp_path
    return tmp_path


@pytest.fixture
def drawing():
    """The packages that draw."""
    if not drawing_packages.are_installed():
        pytest.skip("what draws is not installed")


def smallest_side(path):
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        return min(picture.size)


async def test_an_answer_is_sent_as_it_is():
    text = f"**好**\n{TABLE}\n"
    assert await prepare_answer(text, MarkdownStyle.AS_IS) == [AnswerPiece(text)]


async def test_an_answer_is_made_plain():
    pieces = await prepare_answer("# 题\n**好**" + "。" * 3_000, MarkdownStyle.PLAIN)
    assert pieces == [AnswerPiece("题\n好" + "。" * 3_000)]


async def test_tables_formulae_and_code_are_pictures_in_their_place(drawing):
    text = f"前**文**\n\n{TABLE}\n\n中\n\n{FORMULA}\n\n{CODE}\n后"
    pieces = await prepare_answer(text, MarkdownStyle.PICTURE)
    assert [piece.text for piece in pieces if not piece.picture_path] == ["前文", "中", "后"]
    assert [bool(piece.picture_path) for piece in pieces] == [False, True, False, True, True, False]
    for piece in pieces:
        if piece.picture_path:
            assert smallest_side(piece.picture_path) > 40
    assert pieces[1].text == "名称 | 价格\n苹果 ✅ | 5"


@pytest.mark.parametrize(
    "block",
    [
        "|🦄|\n|-|\n|1|",
        "```\n" + "x\n" * 500 + "```",
        r"$$\ce{H2O}$$",
        r"$$a \not\subset b$$",
        r"$$\frac$$",
        r"$$\begin{matrix}a & b & \end{matrix}$$",
        "```\n" + "x" * 400 + "\n```",
    ],
)
async def test_what_cannot_be_drawn_is_words_and_remarked_on(block, drawing):
    [piece] = await prepare_answer(f"前\n\n{block}\n", MarkdownStyle.PICTURE)
    assert not piece.picture_path
    assert "not drawn" in piece.remark
    assert piece.text.startswith("前\n")


async def test_one_formula_that_is_no_latex_costs_no_other_picture(drawing):
    bad = (r"\frac", r"\left(", "x^{" * 150 + "}" * 150, r"\begin{matrix}", r"x_a_b", r"\genfrac")
    text = "\n\n".join(f"$${formula}$$" for formula in (*bad, "E=mc^2"))
    pieces = await prepare_answer(text, MarkdownStyle.PICTURE)
    assert pieces[-1].picture_path
    assert pieces[-1].text == "$$E=mc^2$$"


async def test_no_word_of_an_answer_is_run_as_code(drawing):
    hostile = '#read("/etc/passwd") #import "@preview/x:1.0.0" #panic() $x$ */ // ]'
    text = (
        f"|{hostile}|\n|-|\n|{hostile}|\n\n```typst\n{hostile}\n```\n\n$$\\text{{{hostile[:60]}}}$$"
    )
    pieces = await prepare_answer(text, MarkdownStyle.PICTURE)
    assert [bool(piece.picture_path) for piece in pieces][:2] == [True, True]


async def test_an_answer_is_words_where_drawing_takes_too_long(monkeypatch):
    monkeypatch.setattr(answer_pieces, "DRAW_SECONDS", 0.001)
    [piece] = await prepare_answer(CODE, MarkdownStyle.PICTURE)
    assert piece.text == "def f(x):\n    return '你好'"


async def test_an_answer_is_words_where_nothing_can_draw(monkeypatch):
    monkeypatch.setattr(answer_pieces, "PROGRAM", ("-c", "import no_such_module"))
    [piece] = await prepare_answer(TABLE, MarkdownStyle.PICTURE)
    assert piece.text == "名称 | 价格\n苹果 ✅ | 5"
    assert piece.remark


async def test_without_the_packages_that_draw_an_answer_is_words_and_no_process_is_started(
    without_drawing, monkeypatch, caplog
):
    monkeypatch.setattr(answer_pieces, "_start", None)
    [piece] = await prepare_answer(f"前\n\n{TABLE}\n", MarkdownStyle.PICTURE)
    assert piece == AnswerPiece(
        "前\n\n名称 | 价格\n苹果 ✅ | 5", remark=answer_pieces.NOT_INSTALLED
    )
    assert "make drawing" in piece.remark
    assert "manage.py install_drawing" in caplog.text
    [plain] = await prepare_answer("**好**", MarkdownStyle.PICTURE)
    assert plain == AnswerPiece("好")


async def test_a_cancelled_drawing_leaves_no_process(monkeypatch):
    begun, start = asyncio.get_running_loop().create_future(), answer_pieces._start

    async def started():
        begun.set_result(await start())
        return begun.result()

    monkeypatch.setattr(answer_pieces, "_start", started)
    monkeypatch.setattr(answer_pieces, "PROGRAM", ("-c", "input(); import time; time.sleep(60)"))
    task = asyncio.create_task(prepare_answer(TABLE, MarkdownStyle.PICTURE))
    process = await begun
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert process.returncode is not None
