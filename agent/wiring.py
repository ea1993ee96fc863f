"""Building the agent from the settings: the one place that knows all its parts."""

from dataclasses import replace

from django.conf import settings

from agent.builtin_tools import send_message, use_subagent
from agent.builtin_tools.provider import MaisakaBuiltinToolProvider
from agent.builtin_tools.use_subagent import Subagent
from agent.llm.base import LLMClient
from agent.llm.client import OpenAIClient
from agent.llm.demo import DemoModel
from agent.triggers import Rules
from tools.configs import SettingsCache
from tools.contract import ToolSpec
from tools.providers.functions import FunctionProvider
from tools.registry import ToolRegistry
from tools.samples.game_version import get_game_version
from tools.samples.weather import get_weather

CODER_PROMPT = "你是编程助手。"
SAMPLES = "samples"
SAMPLE_TOOLS = (get_weather, get_game_version)


def chat_model() -> LLMClient:
    """The model that answers."""
    return _model(settings.UPSTREAM_ENDPOINT, settings.UPSTREAM_API_KEY, settings.MODEL_NAME)


def coder_model() -> LLMClient:
    """The model of the Coder subagent."""
    return _model(settings.CODER_ENDPOINT, settings.CODER_API_KEY, settings.CODER_MODEL_NAME)


def _model(endpoint: str, api_key: str, name: str) -> LLMClient:
    """The model ``name`` at ``endpoint``, or the demo where none is configured."""
    if not endpoint:
        return DemoModel()
    return OpenAIClient(endpoint, api_key, name, timeout_seconds=settings.LLM_TIMEOUT)


def tool_registry(cache: SettingsCache, coder: LLMClient) -> ToolRegistry:
    """Every tool there is, the engine's own first."""
    registry = ToolRegistry(lambda: cache.current)
    subagents = {"Coder": Subagent("Coder", CODER_PROMPT, coder)}
    registry.register_provider(MaisakaBuiltinToolProvider([send_message.TOOL, use_subagent.tool(subagents)]))
    registry.register_provider(FunctionProvider(SAMPLES, "builtin", SAMPLE_TOOLS))
    return registry


def rules() -> Rules:
    return Rules((settings.BOT_NAME, *settings.BOT_ALIASES), settings.GROUP_REPLY_ON_MENTION)


def declared_tools() -> list[ToolSpec]:
    """Every tool that the program brings along, wherever it is offered."""
    subagents = {"Coder": Subagent("Coder", CODER_PROMPT, DemoModel())}
    own = [send_message.TOOL.spec(), use_subagent.tool(subagents).spec()]
    return own + [replace(function.spec, provider_name=SAMPLES) for function in SAMPLE_TOOLS]
