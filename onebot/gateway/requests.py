"""Telling clients what was decided over requests."""

import re

from agent.domain.requests import (
    NOT_KNOWN_TO_CLIENT,
    AnswerOutcome,
    AnswerResult,
    RequestAnswer,
)
from agent.run.message_sender import new_echo
from onebot.connections.client import OneBotClient
from onebot.protocol.actions import ActionResponse, OneBotError
from onebot.protocol.requests import answer_action

#: Time for a client to answer, in seconds.
ANSWER_SECONDS = 10.0
#: Characters of its words that are kept.
MOST_WORDS = 500
#: Words of clients for a request that somebody has decided before. go-cqhttp: HAS_BEEN_CHECKED.
_DECIDED = re.compile(
    r"已(?:经|被)*\S{0,8}处理|重复处理"
    r"|(?:请求|申请|邀请|验证)\S{0,6}已\S{0,4}(?:同意|拒绝|通过|过期|失效)"
    r"|(?:been|was)[_ ](?:checked|handled|processed|decided)|\bexpired\b"
    r"|already[_ ](?:checked|handled|processed|decided|approved|accepted|re\w+ed)",
    re.IGNORECASE,
)


async def answer_request(client: OneBotClient, answer: RequestAnswer) -> AnswerOutcome:
    """Tell the client; see :class:`agent.domain.requests.RequestClient`."""
    action, params = answer_action(answer)
    try:
        response = await client.call(answer.account, action, params, new_echo(), ANSWER_SECONDS)
    except OneBotError as error:
        unknown, unwritten = AnswerResult.UNKNOWN, AnswerResult.UNWRITTEN
        return AnswerOutcome(unknown if error.may_have_arrived else unwritten)
    return read_answer(response)


def read_answer(response: ActionResponse) -> AnswerOutcome:
    """What a client's response says of a decision."""
    if response.is_success:
        return AnswerOutcome(AnswerResult.DONE)
    if response.is_uncertain:
        return AnswerOutcome(AnswerResult.UNKNOWN)
    if response.is_unsupported:
        return AnswerOutcome(AnswerResult.REFUSED, NOT_KNOWN_TO_CLIENT)
    is_decided = _DECIDED.search(response.error_text)
    result = AnswerResult.DECIDED if is_decided else AnswerResult.REFUSED
    return AnswerOutcome(result, response.error_text[:MOST_WORDS])
