"""An agent that works for another one: a model with a prompt, tools and limits of its own. Pure."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from agent.domain.endpoint import ModelRole
from agent.llm.requests.base import LLMClient
from agent.llm.requests.messages import ChatMessage, system_message
from tools.contract import JsonSchema, ToolSpec
from tools.text.fences import neutralize_marks

#: What an agent without an input schema takes.
REQUEST: JsonSchema = {
    "type": "object",
    "properties": {
        "request": {
            "type": "string",
            "minLength": 1,
            "description": "交给它的任务。它看不到聊天记录，请写明所需的全部信息",
        }
    },
    "required": ["request"],
    "additionalProperties": False,
}
ANSWER_FORM = (
    "你的最后回答只能是一个符合下面这个 JSON Schema 的 JSON 对象，前后不要有任何其他文字：\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """What another agent is, for the one that declares it.

    ``model`` is the role whose endpoints are asked, or makes a client of its own; agents with the
    same function share that client.
    """

    name: str
    """Of the tool as well, where it is offered as one."""
    description: str
    """For the model that may hand it work."""
    prompt: str
    """A template, as the persona's is; see :mod:`agent.domain.chat_state`."""
    model: ModelRole | Callable[[], LLMClient] = ModelRole.CHAT
    tools: Collection[str] | Callable[[ToolSpec], bool] = ()
    """The tools it may use, by name or as a predicate; the person who started it must be permitted
    them too."""
    endpoints: tuple[int, ...] = ()
    """Keys of the rows that are asked in this order; without them, those of the role."""
    examples: str = ""
    """Follows the prompt as it is."""
    model_calls: int = 10
    seconds: int = 180
    """The initial time limit in its tool's row."""
    run_seconds: float | None = None
    """A time limit of its own, besides that of the tool's row."""
    input_schema: JsonSchema | None = None
    """Of the arguments, an object; an agent without one takes ``request``, a text."""
    output_schema: JsonSchema | None = None
    """Of the answer, an object; an agent without one answers in words."""

    @property
    def parameters(self) -> JsonSchema:
        """The parameters for the model; an argument that the input schema does not name is an
        error."""
        return (
            REQUEST
            if self.input_schema is None
            else {"additionalProperties": False, **self.input_schema}
        )

    def may_use(self, tool: ToolSpec) -> bool:
        return self.tools(tool) if callable(self.tools) else tool.name in self.tools

    def request(self, arguments: Mapping[str, object]) -> str:
        """Checked ``arguments`` as the words that the agent is asked with."""
        return (
            str(arguments["request"])
            if self.input_schema is None
            else json.dumps(arguments, ensure_ascii=False)
        )

    def opening(self, prompt: str, request: str) -> list[ChatMessage]:
        """The first messages of a conversation that holds nothing else; ``prompt`` is its own,
        filled in for the chat."""
        if self.examples:
            prompt = f"{prompt}\n\n{self.examples}"
        if self.output_schema is not None:
            prompt = (
                f"{prompt}\n\n{ANSWER_FORM}{json.dumps(self.output_schema, ensure_ascii=False)}"
            )
        return [system_message(prompt), {"role": "user", "content": neutralize_marks(request)}]
