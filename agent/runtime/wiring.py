"""Building the agent from the settings: the one place that knows all its parts."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from django.conf import settings

from agent.builtin_tools import (
    acts,
    course,
    memory_tools,
    reminder_tools,
    reply,
    send_message,
    tool_search,
    use_subagent,
)
from agent.builtin_tools.chat_tools import ChatTools
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.endpoint import Endpoint, ModelRole
from agent.domain.types import MediaSource
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.endpoint_book import EndpointBook
from agent.llm.endpoints.endpoint_pool import (
    EndpointClient,
    EndpointPool,
    EndpointTable,
    environment_table,
    ignore_news,
)
from agent.llm.spending import SpendGate
from agent.media.document_reader import DocumentReader
from agent.media.downloads import DailyQuotas, MediaDownloader
from agent.media.file_store import FileStore
from agent.media.image_reader import ImageReader, ImageWorker
from agent.media.media_store import DescriptionCache
from agent.media.pipeline import MediaPipeline, MediaReader
from agent.media.voice_reader import VoiceReader
from agent.memory.service import SUMMARY_CHARS, MemoryService, MemorySettings, SummaryPolicy
from agent.memory.summary_store import HistoryWindow
from agent.record.endpoint_reports import EndpointReports
from agent.record.record import Record
from agent.record.runs.day_calls import find_day_limit
from agent.record.settings.live import LiveSettings
from agent.record.settings.snapshot import Settings
from agent.runtime.plugin_services import PluginServices
from agent.stickers.choosing import StickerChooser
from agent.subagents.provider import AgentRoster, SubagentTool, SubagentToolProvider
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import ToolSpec
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.functions.function_tool import FunctionProvider, FunctionTool
from tools.functions.samples.game_version import get_game_version
from tools.functions.samples.weather import get_weather
from tools.http_tools.provider import HttpToolProvider, load_http_tools
from tools.live_rows import LiveKind
from tools.mcp.provider import McpToolProvider
from tools.mcp.settings import load_server_settings
from tools.plugins.capabilities import CapabilityService
from tools.plugins.host import PluginHost
from tools.plugins.process import ProcessLimits
from tools.plugins.provider import PluginToolProvider
from tools.plugins.rows import load_plugin_settings
from tools.registry.catalogue import LiveProvider
from tools.registry.registry import ToolRegistry
from tools.secrets.models import load_secrets

CODER_PROMPT = "你是编程助手。"
SAMPLES, BUILTIN = "samples", "builtin"
SAMPLE_TOOLS = (get_weather, get_game_version)


def build_endpoint_book(
    record: Record | None = None,
    gate: SpendGate | None = None,
    table: EndpointTable | None = None,
) -> EndpointBook:
    """The endpoints of this process: what the environment names, until there is a table. Without
    a ``record``, nothing is written down of what is learnt of them; without a ``gate``, no budget
    bounds what they cost."""
    reports = EndpointReports(record) if record is not None else None
    album = build_file_store().shown

    def connect(endpoint: Endpoint) -> EndpointClient:
        return OpenAIClient(endpoint, album=album, notices=reports)

    tell = reports.fared if reports is not None else ignore_news
    pool = EndpointPool(connect, tell)
    book = EndpointBook(pool, table or environment_table(), gate, tell)
    if record is not None:
        record.live.subscribe(lambda _, new: book.replace_table(new.endpoints), "endpoints")
    return book


def build_file_store() -> FileStore:
    """Our own copies of what messages held."""
    store = _kept_files(settings.RECEIVED_DIR)
    store.least_free = settings.MEDIA_FREE_BYTES
    return store


@cache
def _kept_files(folder: Path) -> FileStore:
    """One for all that keep something, since it counts what they do."""
    return FileStore(folder)


def build_media_pipeline(record: Record, source: MediaSource, book: EndpointBook) -> MediaPipeline:
    """Everything that media of messages are understood with."""
    files, image_worker = build_file_store(), ImageWorker()
    fetcher = Fetcher(AllowList.parse(settings.FETCH_ALLOW, "media"))
    downloads, answers = MediaDownloader(fetcher, files, source), DescriptionCache(record)
    voice = VoiceReader(answers, downloads, book.transcriber)
    sight = ImageReader(
        answers, downloads, image_worker, partial(book.find_model, ModelRole.VISION)
    )
    readers: list[MediaReader] = [sight, voice, DocumentReader(answers, downloads)]
    days = DailyQuotas(record)
    return MediaPipeline(
        record,
        source,
        files,
        readers,
        [answers, image_worker, fetcher],
        days,
    )


def build_memory(record: Record, book: EndpointBook) -> MemoryService:
    """The memory, as the operator wants it; the demo model reads no chats."""
    find_model = partial(book.find_model, ModelRole.MEMORY)
    return MemoryService(record, memory_settings(), find_model, book.embedder)


def memory_settings() -> MemorySettings:
    """What is wanted of the memory at this moment."""
    chars = settings.MAX_CONTEXT_CHARS - settings.MEMORY_CHARS - SUMMARY_CHARS
    window = HistoryWindow(
        max(0, settings.MAX_CONTEXT_MESSAGES - 4), max(0, chars)
    )  # apart from history: system, summary, memory, current
    habits = SummaryPolicy(window, settings.SUMMARY_AFTER_MESSAGES, settings.MEMORY_EXTRACT_TURNS)
    return MemorySettings(settings.MEMORY_CHARS, habits, settings.MEMORY_REVIEW_HOURS)


SUBAGENTS = [
    Subagent(
        name="Coder", description="擅长编写和解释代码", prompt=CODER_PROMPT, model=ModelRole.CODER
    )
]
"""Agents that the model hands work to by name, with the tool ``use_subagent``."""
AGENTS: list[Subagent] = []
"""Agents that are tools under their own names; add yours here."""


def build_chat_tools(
    record: Record | None, source: MediaSource | None = None, book: EndpointBook | None = None
) -> ChatTools:
    """The tools that look into a chat and send pictures to it."""
    files, book = build_file_store(), book or build_endpoint_book()
    sight = StickerChooser(partial(book.find_model, ModelRole.VISION), files)
    return ChatTools(
        record, files, Fetcher(AllowList.parse(settings.FETCH_ALLOW, "media")), source, sight
    )


def build_roster(settings: Callable[[], Settings] = Settings) -> AgentRoster:
    """All agents: those named here, and those of the personas."""
    return AgentRoster(SUBAGENTS, AGENTS, lambda: settings().personas.agents)


def build_builtin_tools(
    runner: SubagentRunner,
    record: Record | None,
    chat: ChatTools,
    roster: AgentRoster | None = None,
) -> list[FunctionTool]:
    """The reasoning engine's own tools, in the order in which they are offered."""
    replyer = Subagent(
        name="replyer",
        description="撰写回复",
        prompt=settings.SYSTEM_PROMPT,
        model=ModelRole.CHAT,
    )
    return [
        send_message.send_message,
        reply.build_reply_tool(record, runner, replyer, chat.attachments),
        use_subagent.build_subagent_tool(roster or build_roster(), runner),
        course.wait_for_message,
        course.continue_turn,
        course.take_no_action,
        course.finish_turn,
        course.stay_silent,
        tool_search.tool_search,
        *chat.tools,
        memory_tools.remember_note,
        memory_tools.forget_note,
        memory_tools.query_memory,
        memory_tools.query_person_profile,
        *reminder_tools.TOOLS,
        *acts.TOOLS,
    ]


def build_tool_registry(
    current: Callable[[], Settings],
    record: Record | None = None,
    chat: ChatTools | None = None,
    book: EndpointBook | None = None,
) -> ToolRegistry:
    """Every tool there is, the engine's own first, under the settings that are ``current``. Without
    a ``record``, runs of agents are not put down."""
    book = book or build_endpoint_book()
    registry = ToolRegistry(lambda: current().tools, defer_above=settings.DEFER_TOOLS_ABOVE)
    registry.day_limit = partial(find_day_limit, record) if record else None
    runner = SubagentRunner(registry, record, book.model)
    chat = chat or build_chat_tools(record, book=book)
    chat.attach(registry)
    roster = build_roster(current)
    registry.register_provider(
        MaisakaBuiltinToolProvider(build_builtin_tools(runner, record, chat, roster))
    )
    registry.register_provider(FunctionProvider(SAMPLES, BUILTIN, SAMPLE_TOOLS))
    registry.register_provider(SubagentToolProvider(roster, runner))
    return registry


def build_live_providers(record: Record, book: EndpointBook) -> list[LiveProvider]:
    """The tools that come from rows: started only in processes that serve."""
    reserved = [spec.name for spec in declared_tools()]
    services = PluginServices(record, partial(book.model, ModelRole.CHAT))
    capabilities = CapabilityService(record, services)
    plugins = PluginHost(
        record, settings.PLUGINS_DIR, ProcessLimits.from_settings(), capabilities, reserved=reserved
    )
    servers = McpToolProvider(
        record, AllowList.parse(settings.FETCH_ALLOW, "mcp"), reserved=reserved
    )
    requests = HttpToolProvider(Fetcher(AllowList.parse(settings.FETCH_ALLOW, "tools")))
    _follow_outside_rows(record.live, plugins, servers, requests)
    return [PluginToolProvider(plugins), servers, requests]


def _follow_outside_rows(
    live: LiveSettings, plugins: PluginHost, servers: McpToolProvider, requests: HttpToolProvider
) -> None:
    """Have the rows of tools from outside read, and obeyed once they are committed."""
    live.read_by(lambda known: replace(known, secrets=load_secrets()), LiveKind.SECRETS)
    live.read_by(lambda known: replace(known, plugins=load_plugin_settings()), LiveKind.PLUGINS)
    live.read_by(
        lambda known: replace(known, mcp_servers=load_server_settings(known.secrets)),
        *(LiveKind.MCP_SERVERS, LiveKind.SECRETS, LiveKind.INSTALLATION),
    )
    live.read_by(lambda known: replace(known, http_tools=load_http_tools()), LiveKind.HTTP_TOOLS)
    live.subscribe(lambda _, new: plugins.obey(new.plugins), "plugins")
    live.subscribe(lambda _, new: servers.obey(new.mcp_servers), "mcp_servers")
    live.subscribe(lambda _, new: servers.know(new.tools.values()), "tools")
    live.subscribe(
        lambda _, new: requests.obey(new.http_tools, new.secrets), "http_tools", "secrets"
    )


def declared_tools() -> list[ToolSpec]:
    """Every tool that the program brings along, wherever it is offered."""
    runner = SubagentRunner(ToolRegistry())
    own = MaisakaBuiltinToolProvider(build_builtin_tools(runner, None, build_chat_tools(None)))
    samples = FunctionProvider(SAMPLES, BUILTIN, SAMPLE_TOOLS)
    return [*own.specs, *(SubagentTool(agent).spec for agent in AGENTS), *samples.specs]
