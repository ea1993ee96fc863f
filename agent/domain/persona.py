"""A persona as a run uses it: a frozen copy of a row, with the environment where it is empty."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.db.models import TextChoices
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.endpoint import ModelRole

DEFAULT_NAME = "default"


class PersonaKind(TextChoices):
    PERSONA = "persona", _("answers chats")
    AGENT = "agent", _("works for other agents")


class ToolChoice(TextChoices):
    """Which tools are offered; what the tool's own row forbids stays forbidden."""

    ALL = "all", _("all")
    ONLY = "only", _("only the listed ones")
    EXCEPT = "except", _("all but the listed ones")


class FixedLanguage(TextChoices):
    """The language of sentences that the program itself says in a chat."""

    AUTO = "", _("that of the message")
    CHINESE = "zh-hans", _("Chinese")
    ENGLISH = "en", _("English")


class Example(NamedTuple):
    """One exchange of an example dialogue."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class PersonaSettings:
    """Who answers, with what, and within what.

    ``endpoints`` are the keys of the rows that are asked for a role, in order; a role that is
    missing is asked as for the default persona.
    """

    prompt: str
    model_calls: int
    context_messages: int
    context_chars: int
    run_seconds: float
    mention: bool
    """Whether plain answers in groups begin with an at of the sender."""
    quote: bool
    vision_mode: str
    pk: int | None = None
    name: str = DEFAULT_NAME
    description: str = ""
    as_tool: bool = False
    """Of an agent: whether it is a tool under its own name too."""
    examples: tuple[Example, ...] = ()
    tool_choice: str = ToolChoice.ALL
    tools: frozenset[str] = frozenset()
    language: str = FixedLanguage.AUTO
    endpoints: Mapping[ModelRole, tuple[int, ...]] = field(default_factory=dict)

    def offers(self, tool_name: str) -> bool:
        """Whether a tool of this name may be offered."""
        match self.tool_choice:
            case ToolChoice.ONLY:
                return tool_name in self.tools
            case ToolChoice.EXCEPT:
                return tool_name not in self.tools
            case _:
                return True

    def describe_examples(self) -> str:
        """The example dialogues as they stand at the end of the prompt; "" for none."""
        lines = [f"用户：{one.user}\n你：{one.assistant}" for one in self.examples]
        return "\n\n".join([EXAMPLES, *lines]) if lines else ""


EXAMPLES = "下面是示例对话，只示范说话的方式，不是真实发生过的对话："


def environment_persona() -> PersonaSettings:
    """The persona that the environment describes, with what the program decides."""
    return PersonaSettings(
        prompt=settings.SYSTEM_PROMPT,
        model_calls=settings.MAX_ITERATIONS,
        context_messages=settings.MAX_CONTEXT_MESSAGES,
        context_chars=settings.MAX_CONTEXT_CHARS,
        run_seconds=settings.RUN_TIMEOUT,
        mention=settings.ENABLE_AT_IN_GROUP_MSG,
        quote=settings.ENABLE_REPLY_IN_GROUP_MSG,
        vision_mode=settings.VISION_MODE,
    )


LINE = re.compile(
    r"\s*(?:(?P<user>用户|user)|(?P<bot>你|助手|bot|assistant))\s*[:：](?P<words>.*)", re.IGNORECASE
)


class ExampleError(ValueError):
    """What is wrong, in a translated sentence that names the line."""


def parse_examples(text: str) -> list[list[str]]:
    """``[[user, assistant], …]`` of lines that begin with 用户： and 你：, or User: and Bot:. Other
    lines continue the one before. Raises :class:`ExampleError`."""
    turns: list[tuple[int, bool, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := LINE.fullmatch(line):
            turns.append((number, found["bot"] is not None, [found["words"].strip()]))
        elif turns:
            turns[-1][2].append(line.rstrip())
        elif line.strip():
            raise _error(number, gettext("begin with “用户：” or “User:”."))
    return [list(pair) for pair in _pairs(turns)]


def format_examples(examples: Iterable[Iterable[str]]) -> str:
    """``examples`` as :func:`parse_examples` reads them."""
    return "\n\n".join(f"用户：{user}\n你：{bot}" for user, bot in examples)


def _pairs(turns: list[tuple[int, bool, list[str]]]) -> Iterable[tuple[str, str]]:
    said = ""
    last = 0
    for number, is_bot, lines in turns:
        words = "\n".join(lines).strip()
        if not words:
            raise _error(number, gettext("nothing is said here."))
        if is_bot and not said:
            raise _error(number, gettext("a line of the user has to stand before it."))
        if not is_bot and said:
            raise _error(last, gettext("an answer is missing: write “你：” or “Bot:” below."))
        if is_bot:
            yield said, words
        said, last = ("" if is_bot else words), number
    if said:
        raise _error(last, gettext("an answer is missing: write “你：” or “Bot:” below."))


def _error(number: int, reason: str) -> ExampleError:
    return ExampleError(
        gettext("Line %(number)d: %(reason)s") % {"number": number, "reason": reason}
    )
