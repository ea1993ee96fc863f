"""Requests as they were sent to models, made again from the record byte for byte."""

import base64
import json
from collections.abc import Sequence
from typing import Any

from django.db import connection

from agent.domain.states import StepPhase
from agent.llm.requests.base import RequestEncoder
from agent.llm.requests.messages import GONE, SPEAKER, ChatMessage, PictureLoader, kept_hash
from agent.models import Step

#: The order of the keys that messages have, which PostgreSQL does not keep.
ORDER = (
    *("role", "tool_call_id", "content", "reasoning_content", "tool_calls"),
    *("id", "type", "function", "text", "image_url", "name", "arguments"),
)
_RANKS = {key: rank for rank, key in enumerate(ORDER)}


def rebuild_request(step: Step, album: PictureLoader | None = None) -> bytes | None:
    """The body of the request of ``step``; None where the record does not say what was sent: no
    endpoint was asked, it failed before, or the step is of an earlier version.

    Pictures whose copy is gone are sent as what stands for them. On PostgreSQL the keys of what
    providers add to messages may come in another order. Blocks.
    """
    if step.parameters is None:
        return None
    messages = json.loads(step.sent) if step.sent is not None else _messages(step)
    offer = step.offer
    tools = [json.loads(text) for text in offer.definitions] if offer else []
    return build_body(step.model or "", messages, tools, json.loads(step.parameters), album)


def load_opening(run_pk: int) -> list[ChatMessage]:
    """The messages that a run began with, before any was left out for a model's window; [] where
    none is on record. The first is the system message, that of the timing gate where it was asked
    first."""
    steps = Step.objects.filter(run=run_pk).order_by("number")
    request = steps.values_list("request", flat=True).first()
    return [_in_order(message) for message in request or []]


def build_body(
    model: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[dict[str, Any]],
    parameters: dict[str, Any],
    album: PictureLoader | None = None,
) -> bytes:
    """The body that sends ``messages`` as the record has them, with their pictures."""
    sent = [_with_pictures(_without_speaker(message), album) for message in messages]
    return RequestEncoder(model, parameters).encode(sent, tools)


def _messages(step: Step) -> list[ChatMessage]:
    """All messages of the run so far; a step of the timing gate stands for itself."""
    parts = [step.request]
    if step.phase == StepPhase.ACTION:
        before = Step.objects.filter(run=step.run_id, phase=step.phase, number__lt=step.number)
        parts = [*before.order_by("number").values_list("request", flat=True), step.request]
    return [_in_order(message) for part in parts for message in part]


def _in_order(message: ChatMessage) -> ChatMessage:
    """``message`` with its keys in the order in which it was written."""
    ordered: ChatMessage = _ordered(message) if connection.vendor == "postgresql" else message
    return ordered


def _ordered(value: object) -> Any:
    if isinstance(value, list):
        return [_ordered(one) for one in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(value, key=lambda key: _RANKS.get(key, len(ORDER)))
    return {key: _ordered(value[key]) for key in keys}


def _without_speaker(message: ChatMessage) -> ChatMessage:
    return {key: value for key, value in message.items() if key != SPEAKER}


def _with_pictures(message: ChatMessage, album: PictureLoader | None) -> ChatMessage:
    content = message.get("content")
    if album is None or not isinstance(content, list):
        return message
    return {**message, "content": [_with_picture(part, album) for part in content]}


def _with_picture(part: Any, album: PictureLoader) -> Any:
    if not (sha256 := kept_hash(part)):
        return part
    picture = album(sha256)
    if picture is None:
        return GONE
    encoded = base64.b64encode(picture.path.read_bytes()).decode()
    url = f"data:{picture.mime};base64,{encoded}"
    return {"type": "image_url", "image_url": {**part["image_url"], "url": url}}
