"""The tool ``send_emoji``: a sticker of the collection, chosen by words or by a model that
looks."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async

from agent.builtin_tools import attachments
from agent.builtin_tools.attachments import StickerAvailability
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.errors import LLMError
from agent.domain.types import Delivery, MessagePart
from agent.llm.requests.base import LLMClient
from agent.llm.requests.messages import kept_hash
from agent.media import media_folder
from agent.media.file_store import FileStore
from agent.models import Message, Sticker
from agent.record.record import Record
from agent.run.services import RunServices
from agent.stickers import store as stickers
from agent.stickers.choosing import StickerChooser, StickerQuery, parse_choice, rank_stickers
from agent.stickers.store import (
    StickerCandidate,
    count_usable_stickers,
    sync_stickers,
    words_from_path,
)
from tests.agent.talk import GROUP, Script
from tests.pictures import BLUE, GREEN, RED, picture
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.registry.registry import ToolRegistry

State = Message.State


class Voice:
    """A speaker that only remembers what it was given."""

    chat = GROUP

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.delivery = Delivery(State.DELIVERED)

    async def send(self, parts: list[MessagePart], text: str, *, tool_call_pk: int) -> Delivery:
        self.said += [(Path(part.path).name, text) for part in parts]
        return self.delivery


class Desk:
    """Calls the tool as the run loop does."""

    def __init__(self, record: Record, sight: StickerChooser | None = None) -> None:
        self.voice = Voice()
        self.box = StickerAvailability(record)
        self.registry = ToolRegistry()
        self.registry.register_provider(
            MaisakaBuiltinToolProvider([attachments.build_sticker_tool(record, self.box, sight)])
        )

    async def send(self, words: Any, *, looked: bool = True) -> ToolExecutionResult:
        """``looked``: whether this process has just looked at the folder."""
        if looked:
            await self.look()
        context = ToolExecutionContext(
            session_id=GROUP.address, services=RunServices(sender=cast("Any", self.voice))
        )
        return await self.registry.invoke(
            ToolInvocation("send_emoji", {"words": words}, call_pk=5), context
        )

    async def look(self) -> None:
        """At the folder, as its page in the admin does."""
        await sync_to_async(sync_stickers)()
        self.box.recount(await sync_to_async(count_usable_stickers)())

    async def is_offered(self) -> bool:
        return await self.registry.has_tool(
            "send_emoji", ToolAvailabilityContext(session_id=GROUP.address)
        )


@pytest.fixture(autouse=True)
def folder(settings, tmp_path) -> Path:
    """The folder of the stickers, empty."""
    settings.MEDIA_DIR = tmp_path / "media"
    (settings.MEDIA_DIR / "stickers").mkdir(parents=True)
    return Path(settings.MEDIA_DIR) / "stickers"


@pytest.fixture
async def desk(record: Record) -> Desk:
    return Desk(record)


def put(folder: Path, *names: str) -> None:
    """Pictures, each of other content."""
    for place, name in enumerate(names):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(picture(size=(8 + place, 8 + len(name))))


# --- Choosing by words --------------------------------------------------------------


def chosen(wish: str, *words: str) -> list[str]:
    every = [StickerCandidate(place, f"{place}", one, "") for place, one in enumerate(words)]
    return [one.words for one in rank_stickers(wish, every)]


@pytest.mark.parametrize(
    ("wish", "words", "first"),
    [
        ("开心", ["伤心的狗", "小猫很开心"], "小猫很开心"),
        ("无语的猫", ["猫", "无语 黑猫", "无语"], "无语 黑猫"),
        ("哭泣", ["大笑", "大哭"], "大哭"),
        ("Thumbs UP", ["thumb", "thumbs up 点赞"], "thumbs up 点赞"),
        ("ＯＫ", ["ok", "no"], "ok"),
        ("我真的是太高兴了", ["晚安", "高兴"], "高兴"),
    ],
)
def test_what_shares_the_most_with_the_wish_comes_first(wish, words, first):
    assert chosen(wish, *words)[0] == first


def test_what_has_nothing_in_common_with_the_wish_is_left_out():
    assert chosen("我的天的了", "你的猫", "cat") == []
    assert chosen("", "猫") == []


def test_a_tag_counts_more_than_a_word_in_passing():
    wish = StickerQuery("早安")
    assert wish.score("太阳", ["早安"]) > wish.score("一只猫在说早安吧", []) > 0


def test_a_file_is_described_by_its_name_and_folders():
    assert words_from_path("猫/开心_cat-2.tar.png") == "猫 开心 cat 2.tar"


# --- Sending ------------------------------------------------------------------------


async def test_a_file_in_the_folder_is_a_sticker_and_is_sent_by_its_words(desk: Desk, folder: Path):
    put(folder, "伤心.png", "cats/开心.gif")
    result = await desk.send("开心的猫")
    assert (result.content, desk.voice.said) == (
        "已发送[表情：cats 开心]",
        [("开心.gif", "[表情：cats 开心]")],
    )
    used = await Sticker.objects.aget(path="cats/开心.gif")
    assert (used.use_count, used.last_used_at is not None) == (1, True)


async def test_of_stickers_that_fit_equally_the_one_that_rested_longest_is_sent(
    desk: Desk, folder: Path
):
    put(folder, "a 开心.png", "b 开心.png")
    for _ in range(3):
        await desk.send("开心")
    assert [name for name, _ in desk.voice.said] == ["a 开心.png", "b 开心.png", "a 开心.png"]


async def test_when_nothing_fits_the_model_is_told_what_there_is(desk: Desk, folder: Path):
    put(folder, "开心.png", "伤心.png")
    result = await desk.send("火车")
    assert (result.success, desk.voice.said) == (False, [])
    assert "开心、伤心" in result.error_message or "伤心、开心" in result.error_message


async def test_a_disabled_sticker_is_not_sent(desk: Desk, folder: Path):
    put(folder, "开心.png", "开心 猫.png")
    await sync_to_async(sync_stickers)()
    await Sticker.objects.filter(path="开心.png").aupdate(enabled=False)
    await desk.send("开心")
    assert [name for name, _ in desk.voice.said] == ["开心 猫.png"]


async def test_a_sticker_whose_file_is_gone_is_passed_over_and_marked(desk: Desk, folder: Path):
    put(folder, "开心.png", "开心 猫.png")
    await desk.look()
    (folder / "开心.png").unlink()
    await desk.send("开心", looked=False)
    assert [name for name, _ in desk.voice.said] == ["开心 猫.png"]
    assert (await Sticker.objects.aget(path="开心.png")).is_missing
    (folder / "开心 猫.png").unlink()
    assert attachments.NO_FILES in (await desk.send("开心", looked=False)).error_message


async def test_a_link_that_leads_out_of_the_folder_is_no_sticker(
    desk: Desk, folder: Path, tmp_path: Path
):
    (tmp_path / "secret.png").write_bytes(picture())
    (folder / "开心.png").symlink_to(tmp_path / "secret.png")
    assert not (await desk.send("开心")).success
    assert not await Sticker.objects.aexists()


@pytest.mark.parametrize(
    ("state", "told", "count"), [(State.FAILED, "bot is muted", 0), (State.UNKNOWN, "请勿重发", 1)]
)
async def test_the_model_is_told_what_the_client_said(desk: Desk, folder: Path, state, told, count):
    put(folder, "开心.png")
    desk.voice.delivery = Delivery(state, error="bot is muted")
    assert told in (await desk.send("开心")).get_history_content()
    assert (await Sticker.objects.aget()).use_count == count


@pytest.mark.parametrize("words", ["", "  ", None, [], "长" * 300])
async def test_words_that_are_none_are_refused(desk: Desk, folder: Path, words):
    put(folder, "开心.png")
    assert not (await desk.send(words)).success
    assert desk.voice.said == []


# --- The collection -----------------------------------------------------------------


async def test_it_is_offered_while_there_are_stickers(desk: Desk, folder: Path):
    assert not await desk.is_offered()
    put(folder, "开心.png")
    await desk.send("开心")
    assert await desk.is_offered()
    (folder / "开心.png").unlink()
    await desk.send("开心")
    assert not await desk.is_offered()


async def test_a_call_after_the_last_sticker_was_disabled_says_why_nothing_is_sent(
    desk: Desk, folder: Path
):
    put(folder, "开心.png")
    await desk.look()
    await Sticker.objects.aupdate(enabled=False)
    assert attachments.NO_STICKERS in (await desk.send("开心", looked=False)).error_message


def looks() -> list[asyncio.Task[Any]]:
    """Those at the folder that are under way."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "stickers"]


async def test_whoever_asks_for_the_tools_sets_off_a_look_at_the_folder_now_and_then(
    record: Record, folder: Path
):
    put(folder, "开心.png")
    desk = Desk(record)
    assert not await desk.is_offered()
    await asyncio.wait(looks())
    assert await desk.is_offered()
    put(folder, "伤心.png")
    await desk.is_offered()
    assert not looks()
    assert await Sticker.objects.acount() == 1  # not again so soon


async def test_a_file_that_moves_keeps_its_words(folder: Path, transactional_db):
    put(folder, "a.png")
    await sync_to_async(sync_stickers)()
    await Sticker.objects.aupdate(words="开心", use_count=3)
    (folder / "a.png").rename(folder / "b.png")
    await sync_to_async(sync_stickers)()
    moved = await Sticker.objects.aget()
    assert (moved.path, moved.words, moved.use_count, moved.is_missing) == (
        "b.png",
        "开心",
        3,
        False,
    )


async def test_many_new_files_are_taken_in_a_few_at_a_look(
    folder: Path, transactional_db, monkeypatch
):
    put(folder, "a.png", "bb.png", "ccc.png")
    monkeypatch.setattr(stickers, "NEW_AT_ONCE", 2)
    counts = [await sync_to_async(sync_stickers)() for _ in range(2)]
    put(folder, "d.png", "ee.png")
    monkeypatch.setattr(stickers, "BYTES_AT_ONCE", 1)
    counts += [await sync_to_async(sync_stickers)() for _ in range(2)]
    assert counts == [2, 3, 4, 5]


async def test_a_file_that_comes_back_is_a_sticker_again(folder: Path, transactional_db):
    put(folder, "a.png")
    content = (folder / "a.png").read_bytes()
    counts = [await sync_to_async(sync_stickers)()]
    (folder / "a.png").unlink()
    counts.append(await sync_to_async(sync_stickers)())
    (folder / "a.png").write_bytes(content)
    counts.append(await sync_to_async(sync_stickers)())
    assert counts == [1, 0, 1]


@pytest.mark.parametrize("name", [".hidden.png", "notes.txt", ".git/a.png"])
async def test_what_is_no_picture_or_hidden_makes_no_row(folder: Path, name, transactional_db):
    put(folder, name)
    assert await sync_to_async(sync_stickers)() == 0
    assert not await Sticker.objects.aexists()


async def test_a_file_that_only_looks_like_a_picture_is_on_record_and_never_sent(
    desk: Desk, folder: Path
):
    (folder / "开心.png").write_text("no picture")
    assert not (await desk.send("开心")).success
    assert (await Sticker.objects.aget()).sha256 == ""


# --- Choosing by looking ------------------------------------------------------------


@pytest.fixture
def _looks(settings: Any) -> None:
    settings.STICKERS_BY_VISION = True


def looking(record: Record, tmp_path: Path, *answers: Any) -> tuple[Desk, Script]:
    model = Script(*answers)

    def client() -> LLMClient:
        return model

    return Desk(record, StickerChooser(client, FileStore(tmp_path / "received"))), model


def three(folder: Path) -> None:
    for name, colour in (("红.png", RED), ("蓝.png", BLUE), ("绿.png", GREEN)):
        (folder / name).write_bytes(picture(colour=colour))


@pytest.mark.usefixtures("_looks")
async def test_a_model_is_shown_numbered_pictures_and_its_choice_is_sent(
    record: Record, folder: Path, tmp_path: Path
):
    three(folder)
    desk, model = looking(record, tmp_path, "我选 2 号")
    assert (await desk.send("绿色")).success
    content = model.requests[0].messages[-1]["content"]
    numbered = [part["text"][:1] for part in content if part["type"] == "text"][1:]
    assert (numbered, len({kept_hash(part) for part in content} - {""})) == (["1", "2", "3"], 3)
    assert content[1]["text"] == "1. 绿"  # what the words say comes first
    assert desk.voice.said[0][0] == content[3]["text"].removeprefix("2. ") + ".png"


@pytest.mark.parametrize("answer", ["都不好", "0", "99", "", "-"])
async def test_an_answer_that_names_none_means_the_first(
    record: Record, folder: Path, tmp_path: Path, answer
):
    three(folder)
    desk, _ = looking(record, tmp_path, answer)
    await desk.send("绿")
    assert desk.voice.said[0][0] == "绿.png"


async def test_a_model_that_cannot_be_asked_leaves_the_choice_to_the_words(
    record: Record, folder: Path, tmp_path: Path
):
    three(folder)
    desk, _ = looking(record, tmp_path, LLMError("no"), LLMError("no"))
    await desk.send("蓝")
    assert desk.voice.said[0][0] == "蓝.png"
    assert "没有符合" in (await desk.send("火车")).error_message


@pytest.mark.usefixtures("_looks")
async def test_a_picture_that_cannot_be_decoded_is_not_shown(
    record: Record, folder: Path, tmp_path: Path
):
    three(folder)
    (folder / "绿.png").write_bytes(picture(colour=GREEN)[:60])
    desk, model = looking(record, tmp_path, "1")
    await desk.send("红")
    assert len([part for part in model.requests[0].messages[-1]["content"] if kept_hash(part)]) == 2


@pytest.mark.parametrize(
    ("answer", "place"), [("3", 2), ("第 2 张。", 1), ("4", 0), ("1" * 50, 0), ("一", 0)]
)
def test_the_first_number_of_an_answer_counts_within_bounds(answer, place):
    assert parse_choice(answer, 3) == place


def test_stickers_lie_where_send_message_may_send_from(folder: Path):
    assert media_folder.locate_media_file("stickers/a.png") == folder.resolve() / "a.png"
