"""What one run may say: a bound on messages and on characters, all ways together."""

import json
from typing import Any

from asgiref.sync import sync_to_async

from agent.chat.speaking import ANSWER_CUT
from agent.models import Message, Run
from agent.run.message_sender import CHARACTERS, CUT, MESSAGES, SendAllowance
from tests.agent.builtin_tools.test_send_message import answered
from tests.agent.talk import Mailbox, calling


def speaking(*texts: str) -> dict[str, Any]:
    """An answer that sends each of ``texts`` by tool."""
    said = [json.dumps({"messages": [{"type": "plain", "text": text}]}) for text in texts]
    return calling(*[("send_message", arguments) for arguments in said])


@sync_to_async
def last_run() -> Run:
    return Run.objects.latest("pk")


async def test_the_messages_of_a_run_are_counted_and_the_last_is_kept_for_the_answer(record):
    mailbox = Mailbox()
    model = await answered(record, mailbox, speaking(*["hi"] * 30), speaking(*["ho"] * 30), "done")
    assert mailbox.texts == ["hi"] * 30 + ["ho"] * (MESSAGES - 31) + ["done"]
    told = [one["content"] for one in model.requests[2].messages if one["role"] == "tool"]
    assert told[MESSAGES - 2] == "消息已发送"
    assert all("本轮最多用工具发送 49 条消息" in one for one in told[MESSAGES - 1 :])
    assert await sync_to_async(Message.objects.filter(direction="out").count)() == MESSAGES


async def test_a_message_that_is_more_than_is_left_is_not_sent_and_a_shorter_one_is(record):
    mailbox = Mailbox()
    mailbox.takes_any_length = True
    model = await answered(record, mailbox, speaking("a" * 150_000, "b" * 50_001, "c"), "done")
    assert mailbox.texts == ["a" * 150_000, "c", "done"]
    refused = model.requests[1].messages[4]["content"]
    assert "本轮最多发送 200000 个字，还剩 50000 个" in refused


async def test_a_final_answer_that_is_more_than_is_left_is_cut_and_noted(record):
    mailbox = Mailbox()
    mailbox.takes_any_length = True
    last = " ".join(map(str, range(20_000)))[:60_000]
    await answered(record, mailbox, speaking("a" * 150_000), last)
    cut = last[: 50_000 - len(CUT)] + CUT
    assert mailbox.texts[1].replace(" ", "") == cut.replace(" ", "")
    run = await last_run()
    assert (run.state, run.notes, run.final_text) == ("finished", [ANSWER_CUT], cut)


async def test_the_parts_of_a_long_message_count_and_too_many_of_them_are_not_begun(record):
    mailbox = Mailbox()
    model = await answered(record, mailbox, speaking("a" * 80_000, "b" * 30_000, "c"), "done")
    assert mailbox.texts == ["a" * 2_000] * 40 + ["c", "done"]
    refused = model.requests[1].messages[4]["content"]
    assert "要分成 15 条消息，本轮只能再用工具发送 9 条" in refused


def test_with_nothing_left_there_is_still_a_mark():
    allowance = SendAllowance(1, CHARACTERS)
    assert (
        allowance.cut_to_fit("a"),
        allowance.cut_to_fit(""),
        SendAllowance(1, CHARACTERS + 5).cut_to_fit("a"),
    ) == (CUT, "", CUT)
