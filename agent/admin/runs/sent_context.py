"""What a model call was sent: the new messages, the whole request, the tools, and what was left
out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.admin.runs.turns import TranscriptMessage, parse_transcript
from agent.models import Step, ToolOffer
from agent.pages.runs.held_back import veil_whole
from agent.pages.runs.step_facts import read_definitions
from agent.record.runs.requests import rebuild_request
from tools.text.readable import TEXT_LIMIT, drop_surrogates, format_readable


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool as it was offered; ``definition`` is "" where no more than the name is on record."""

    name: str
    definition: str = ""
    characters: int = 0


@dataclass(frozen=True, slots=True)
class SentContext:
    """The request of one step. ``messages`` are those since the step before, or all of them where
    it ``is_whole``; the counts are those of the whole request."""

    messages: Sequence[TranscriptMessage] = ()
    is_whole: bool = False
    count: int = 0
    characters: int = 0
    tokens: int = 0
    tools: Sequence[OfferedTool] = ()
    tools_as_in: int | None = None
    """The number of the earlier step that was offered the same, which shows them."""
    tool_count: int = 0
    left_out: int = 0
    """Messages of the run so far that were not sent, for lack of room."""
    tools_left_out: Sequence[str] = ()
    reshaped: int | None = None
    """The messages that were really sent, where some were shortened, or put into the form that the
    endpoint takes."""


@dataclass(slots=True)
class ContextReader:
    """Reads the requests of a run's steps, in their order; ``whole`` is the number of the step that
    is shown with all its messages. Of each text of the others ``limit`` characters are shown."""

    offers: Mapping[int, ToolOffer] = field(default_factory=dict)
    whole: int = 0
    limit: int = TEXT_LIMIT
    shows_prompts: bool = True
    _seen: dict[int, int] = field(default_factory=dict)
    _count: int = 0
    _characters: int = 0
    _tokens: int = 0

    def read(self, step: Step) -> SentContext:
        """The request of ``step``, which comes after those that were read before."""
        new = parse_transcript(step.request, self.limit)
        count, characters, tokens = self._counted(step, new)
        sent = len(json.loads(step.sent)) if step.sent is not None else count
        shown = self._read_whole(step) or new
        offered = self._tools(step)
        names = [drop_surrogates(str(name)) for name in step.tools]
        known = {tool.name for tool in self._definitions(step)}
        return SentContext(
            shown,
            shown is not new or count == len(new),
            count,
            characters,
            tokens,
            offered,
            self._seen.get(step.offer_id or 0) if names and not offered else None,
            len(names),
            max(count - sent, 0),
            [name for name in names if name not in known] if known else (),
            sent if step.sent is not None and sent >= count else None,
        )

    def _counted(self, step: Step, new: Sequence[TranscriptMessage]) -> tuple[int, int, int]:
        """Messages, characters and tokens of the whole request."""
        sums = (len(new), sum(one.characters for one in new), sum(one.tokens for one in new))
        if step.phase != Step.Phase.ACTION:  # the timing gate is sent a request of its own
            return sums
        self._count += sums[0]
        self._characters += sums[1]
        self._tokens += sums[2]
        return self._count, self._characters, self._tokens

    def _read_whole(self, step: Step) -> Sequence[TranscriptMessage]:
        """All that was really sent, without the pictures themselves; () where it is not wanted, or
        not on record."""
        body = rebuild_request(step) if step.number == self.whole else None
        if body is None:
            return ()
        messages = json.loads(body)["messages"]
        return parse_transcript(messages if self.shows_prompts else veil_whole(messages))

    def _tools(self, step: Step) -> Sequence[OfferedTool]:
        """Of each set of tools once, at the first step that was offered it."""
        if step.offer_id is None:
            return [OfferedTool(drop_surrogates(str(name))) for name in step.tools]
        if self._seen.setdefault(step.offer_id, step.number) != step.number:
            return ()
        return self._definitions(step)

    def _definitions(self, step: Step) -> Sequence[OfferedTool]:
        offer = self.offers.get(step.offer_id or 0)
        return [_offered(one) for one in read_definitions(offer.definitions)] if offer else ()


def _offered(definition: Any) -> OfferedTool:
    inner = definition.get("function") if isinstance(definition, dict) else None
    named = inner if isinstance(inner, dict) else definition
    name = str(named.get("name")) if isinstance(named, dict) else ""
    return OfferedTool(name, format_readable(definition), len(json.dumps(definition)))
