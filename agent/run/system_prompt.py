"""The persona's prompt as one chat is to see it."""

from dataclasses import replace

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.chat_state import (
    RenderedPrompt,
    parse_prompt_placeholders,
    program_values,
    render_known_values,
)
from agent.domain.persona import PersonaSettings
from agent.domain.types import ChatKind
from agent.run.services import get_services
from tools.contract import ToolExecutionContext
from tools.registry.registry import ToolRegistry, sort_for_model

#: How a note begins that names the placeholders after it.
NO_VALUE = gettext_noop(
    "Placeholders of the prompt without a value were left as they are written; give them one in "
    "the state of the chat,"
    " on its page in the admin, or enable the tool that is meant:"
)


async def render_chat_prompt(
    persona: PersonaSettings, context: ToolExecutionContext, registry: ToolRegistry
) -> RenderedPrompt:
    """The prompt of ``persona``, with its example dialogues, for the chat of ``context``; see
    :func:`render_prompt`."""
    prompt = await render_prompt(persona.prompt, context, registry)
    examples = persona.describe_examples() if persona.examples else ""
    return replace(prompt, text=f"{prompt.text}\n\n{examples}") if examples else prompt


async def render_prompt(
    template: str, context: ToolExecutionContext, registry: ToolRegistry
) -> RenderedPrompt:
    """``template`` for the chat of ``context``; what its state has comes before what the program
    knows.

    Unknown placeholders are left as they are: a prompt that is not perfect is better than no
    answer.
    """
    wanted = parse_prompt_placeholders(template)
    if not wanted:
        return RenderedPrompt(template)
    state = get_services(context).chat_state
    values = program_values(settings.BOT_NAME, _kind(context), timezone.localtime()) | state.values
    asks_for_tools = any(placeholder.is_tool for placeholder in wanted)
    specs = (
        sort_for_model(await registry.list_tools(context.availability())) if asks_for_tools else []
    )
    return render_known_values(template, values, {spec.name for spec in specs})


def prompt_notes(prompt: RenderedPrompt) -> list[str]:
    """The note about the prompt in the run's record: a fixed sentence, and a line of
    placeholders."""
    return [f"{NO_VALUE}\n{', '.join(prompt.missing)}"] if prompt.missing else []


def _kind(context: ToolExecutionContext) -> ChatKind | None:
    if context.is_group_chat is None:
        return None
    return "group" if context.is_group_chat else "private"
