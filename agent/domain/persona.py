"""A persona as a run uses it: a frozen copy of a row, with the environment where it is empty."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from agent.domain.model_roles import ModelRole

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
class Persona:
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
    is_agent: bool = False
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


def environment_persona() -> Persona:
    """The persona that the environment describes, with what the program decides."""
    return Persona(
        prompt=settings.SYSTEM_PROMPT,
        model_calls=settings.MAX_ITERATIONS,
        context_messages=settings.MAX_CONTEXT_MESSAGES,
        context_chars=settings.MAX_CONTEXT_CHARS,
        run_seconds=settings.RUN_TIMEOUT,
        mention=settings.ENABLE_AT_IN_GROUP_MSG,
        quote=settings.ENABLE_REPLY_IN_GROUP_MSG,
        vision_mode=settings.VISION_MODE,
    )
