"""Building the agent from the settings: the one place that knows all its parts."""

from functools import cache
from pathlib import Path

from django.conf import settings

from agent.builtin_tools import (
    course,
    query_memory,
    query_person_profile,
    remember,
    reply,
    send_message,
    tool_search,
    use_subagent,
    wait,
)
from agent.builtin_tools.chat_tools import ChatTools
from agent.builtin_tools.provider import MaisakaBuiltinToolProvider
from agent.domain import answer_policy
from agent.domain.answer_triggers import TriggerRules
from agent.domain.endpoint import Endpoint
from agent.domain.types import MediaSource
from agent.llm.base import LLMClient
from agent.llm.client import OpenAIClient
from agent.llm.demo import DemoModel
from agent.llm.embeddings import Embedder
from agent.llm.transcription import Transcriber
from agent.media.daily_budget import DailyQuotas
from agent.media.description_cache import DescriptionCache
from agent.media.document_reader import DocumentReader
from agent.media.downloads import MediaDownloader
from agent.media.file_store import FileStore
from agent.media.image_reader import ImageReader
from agent.media.image_worker import ImageWorker
from agent.media.pipeline import MediaPipeline, MediaReader
from agent.media.voice_reader import VoiceReader
from agent.memory.background_jobs import SummaryPolicy
from agent.memory.llm_prompts import SUMMARY_CHARS
from agent.memory.service import MemoryService, MemorySettings
from agent.memory.summary_store import HistoryWindow
from agent.record.accounts import AccountRows
from agent.record.quotas import AnswerQuotas
from agent.record.record import Record
from agent.runtime.plugin_services import PluginServices
from agent.stickers.choosing import StickerChooser
from agent.subagents.provider import SubagentTool, SubagentToolProvider
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import ToolSpec
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.functions.function_tool import FunctionTool
from tools.functions.provider import FunctionProvider
from tools.functions.samples.game_version import get_game_version
from tools.functions.samples.weather import get_weather
from tools.http_tools.provider import HttpToolProvider
from tools.mcp.provider import McpToolProvider
from tools.plugins.capabilities import CapabilityService
from tools.plugins.host import PluginHost
from tools.plugins.process_limits import ProcessLimits
from tools.plugins.provider import PluginToolProvider
from tools.registry.live_provider import LiveProvider
from tools.registry.registry import ToolRegistry
from tools.registry.settings import SettingsCache

CODER_PROMPT = "你是编程助手。"
SAMPLES, BUILTIN = "samples", "builtin"
SAMPLE_TOOLS = (get_weather, get_game_version)


def build_chat_model() -> LLMClient:
    """The model that answers."""
    return _model(settings.UPSTREAM_ENDPOINT, settings.UPSTREAM_API_KEY, settings.MODEL_NAME)


def build_coder_model() -> LLMClient:
    """The model of the Coder subagent."""
    return _model(settings.CODER_ENDPOINT, settings.CODER_API_KEY, settings.CODER_MODEL_NAME)


def _model(endpoint: str, api_key: str, name: str) -> LLMClient:
    """The model ``name`` at ``endpoint``, or the demo where none is configured."""
    if not endpoint:
        return DemoModel()
    return OpenAIClient(_endpoint(endpoint, api_key, name), album=build_file_store().shown)


def _endpoint(url: str, key: str, model: str) -> Endpoint:
    return Endpoint(url, (key,) if key else (), model, timeout_seconds=settings.LLM_TIMEOUT)


def build_vision_model() -> LLMClient | None:
    """The model that describes pictures; None where none is configured."""
    if not (settings.UPSTREAM_ENDPOINT and settings.VISUAL_MODEL_NAME):
        return None
    return _model(settings.UPSTREAM_ENDPOINT, settings.UPSTREAM_API_KEY, settings.VISUAL_MODEL_NAME)


def build_file_store() -> FileStore:
    """Our own copies of what messages held."""
    return _kept_files(settings.RECEIVED_DIR, settings.MEDIA_FREE_BYTES)


@cache
def _kept_files(folder: Path, least_free: int) -> FileStore:
    """One for all that keep something, since it counts what they do."""
    return FileStore(folder, least_free)


def build_transcriber() -> Transcriber | None:
    """What turns voice into words; None where no model for it is configured."""
    client = _side_client(settings.TRANSCRIBE_MODEL_NAME)
    return Transcriber(client) if client else None


def _side_client(name: str) -> OpenAIClient | None:
    """A client for another model at the endpoint of the one that answers; None where it has no
    name, or there is no endpoint."""
    endpoint, key = settings.UPSTREAM_ENDPOINT, settings.UPSTREAM_API_KEY
    if not (endpoint and name):
        return None
    return OpenAIClient(_endpoint(endpoint, key, name))


def build_media_pipeline(record: Record, source: MediaSource) -> MediaPipeline:
    """Everything that media of messages are understood with."""
    files, image_worker, vision = build_file_store(), ImageWorker(), build_vision_model()
    fetcher = Fetcher(AllowList.parse(settings.FETCH_ALLOW, "media"))
    downloads, answers = MediaDownloader(fetcher, files, source), DescriptionCache(record)
    voice = VoiceReader(answers, downloads, build_transcriber())
    sight = ImageReader(answers, downloads, image_worker, vision)
    readers: list[MediaReader] = [sight, voice, DocumentReader(answers, downloads)]
    days = DailyQuotas(record, settings.MEDIA_PERSON_MIB_PER_DAY * 2**20)
    return MediaPipeline(
        record,
        source,
        files,
        readers,
        [answers, image_worker, fetcher, voice, *filter(None, [vision])],
        days,
    )


def build_memory(record: Record, model: LLMClient) -> MemoryService:
    """The memory, as the operator wants it; the demo model reads no chats."""
    chars = settings.MAX_CONTEXT_CHARS - settings.MEMORY_CHARS - SUMMARY_CHARS
    window = HistoryWindow(
        max(0, settings.MAX_CONTEXT_MESSAGES - 4), max(0, chars)
    )  # apart from history: system, summary, memory, current
    habits = SummaryPolicy(window, settings.SUMMARY_AFTER_MESSAGES, settings.MEMORY_EXTRACT_TURNS)
    wanted = MemorySettings(settings.MEMORY_CHARS, habits, settings.MEMORY_REVIEW_HOURS)
    return MemoryService(
        record, wanted, model if settings.UPSTREAM_ENDPOINT else None, build_embedder()
    )


def build_embedder() -> Embedder | None:
    """What compares meanings; None where no model for it is configured."""
    client = _side_client(settings.EMBEDDING_MODEL_NAME)
    return Embedder(client) if client else None


SUBAGENTS = [
    Subagent(
        name="Coder", description="擅长编写和解释代码", prompt=CODER_PROMPT, model=build_coder_model
    )
]
"""Agents that the model hands work to by name, with the tool ``use_subagent``."""
AGENTS: list[Subagent] = []
"""Agents that are tools under their own names; add yours here."""


def build_chat_tools(record: Record | None, source: MediaSource | None = None) -> ChatTools:
    """The tools that look into a chat and send pictures to it."""
    files = build_file_store()
    sight = StickerChooser(build_vision_model, files) if settings.STICKERS_BY_VISION else None
    return ChatTools(
        record, files, Fetcher(AllowList.parse(settings.FETCH_ALLOW, "media")), source, sight
    )


def build_builtin_tools(
    runner: SubagentRunner, record: Record | None, chat: ChatTools
) -> list[FunctionTool]:
    """The reasoning engine's own tools, in the order in which they are offered."""
    replyer = Subagent(
        name="replyer",
        description="撰写回复",
        prompt=settings.SYSTEM_PROMPT,
        model=build_chat_model,
    )
    return [
        send_message.send_message,
        reply.build_reply_tool(record, runner, replyer, chat.attachments),
        use_subagent.build_subagent_tool(SUBAGENTS, runner),
        wait.wait_for_message,
        course.continue_turn,
        course.take_no_action,
        course.finish_turn,
        course.stay_silent,
        tool_search.tool_search,
        *chat.tools,
        remember.remember_note,
        remember.forget_note,
        query_memory.query_memory,
        query_person_profile.query_person_profile,
    ]


def build_tool_registry(
    cache: SettingsCache, record: Record | None = None, chat: ChatTools | None = None
) -> ToolRegistry:
    """Every tool there is, the engine's own first. Without a ``record``, runs of agents are not put
    down."""
    registry = ToolRegistry(lambda: cache.current, defer_above=settings.DEFER_TOOLS_ABOVE)
    runner = SubagentRunner(registry, record)
    chat = chat or build_chat_tools(record)
    chat.attach(registry)
    registry.register_provider(
        MaisakaBuiltinToolProvider(build_builtin_tools(runner, record, chat))
    )
    registry.register_provider(SubagentToolProvider(AGENTS, runner))
    registry.register_provider(FunctionProvider(SAMPLES, BUILTIN, SAMPLE_TOOLS))
    return registry


def build_live_providers(record: Record) -> list[LiveProvider]:
    """The tools that come from rows: started only in processes that serve."""
    reserved = [spec.name for spec in declared_tools()]
    capabilities = CapabilityService(record, PluginServices(record, build_chat_model))
    plugins = PluginHost(
        record, settings.PLUGINS_DIR, ProcessLimits.from_settings(), capabilities, reserved=reserved
    )
    return [
        PluginToolProvider(plugins),
        McpToolProvider(record, AllowList.parse(settings.FETCH_ALLOW, "mcp"), reserved=reserved),
        HttpToolProvider(Fetcher(AllowList.parse(settings.FETCH_ALLOW, "tools"))),
    ]


def build_trigger_rules() -> TriggerRules:
    return TriggerRules((settings.BOT_NAME, *settings.BOT_ALIASES), settings.GROUP_REPLY_ON_MENTION)


def build_quotas(accounts: AccountRows) -> AnswerQuotas:
    """Who is answered, and how often, by the rows of their ``accounts``."""
    answers = (
        settings.PERSON_ANSWERS_PER_MINUTE,
        settings.PERSON_ANSWERS_PER_DAY,
        settings.CHAT_ANSWERS_PER_MINUTE,
        settings.CHAT_ANSWERS_PER_DAY,
    )
    return AnswerQuotas(accounts, answer_policy.AnswerLimits(*answers), settings.TOKENS_PER_DAY)


def declared_tools() -> list[ToolSpec]:
    """Every tool that the program brings along, wherever it is offered."""
    own = MaisakaBuiltinToolProvider(
        build_builtin_tools(SubagentRunner(ToolRegistry()), None, build_chat_tools(None))
    )
    samples = FunctionProvider(SAMPLES, BUILTIN, SAMPLE_TOOLS)
    return [*own.specs, *(SubagentTool(agent).spec for agent in AGENTS), *samples.specs]
