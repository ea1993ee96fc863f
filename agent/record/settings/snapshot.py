"""What is obeyed of rows: one frozen value, and how its parts are read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Q

from agent.domain.budgets import BudgetTerms
from agent.domain.states import Pause
from agent.domain.types import AccountSettings, ChatAddress
from agent.llm.endpoints.endpoint_pool import EndpointTable, environment_table
from agent.models import Reminder
from agent.record.settings.endpoints import load_endpoint_rows
from agent.record.settings.event_rules import EventRules, load_event_rules
from agent.record.settings.installation import load_installation, obey
from agent.record.settings.manners import MannersTable, load_manners_table
from agent.record.settings.personas import PersonaTable, load_chosen, load_personas
from tools.http_tools.validation import HttpToolSettings
from tools.live_rows import LiveKind
from tools.local_time import Clock
from tools.mcp.settings import McpServerSettings
from tools.plugins.rows import PluginSettings
from tools.registry.settings import ToolSettings, load_tool_settings
from tools.secrets.masked import SecretValues


@dataclass(frozen=True, slots=True)
class ReminderNews:
    """Reminders have changed since the one before: whether any has something to be done."""

    is_any: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """What operators set, and what else processes remember of rows, as one transaction saw it.

    It is replaced and never changed, and so are its parts: one that is the same object as before is
    as it was. A part of which nobody here has need stays empty.
    """

    versions: Mapping[int, int] = field(default_factory=dict)
    """Of each :class:`LiveKind`, as of which its rows are here."""
    clock: Clock = field(default_factory=Clock)
    said: Mapping[str, Any] = field(default_factory=dict)
    """What counts in place of the environment, by the name of Django's setting."""
    accounts: Mapping[str, AccountSettings] = field(default_factory=dict)
    manners: MannersTable = field(default_factory=MannersTable)
    event_rules: EventRules = field(default_factory=EventRules)
    personas: PersonaTable = field(default_factory=PersonaTable)
    endpoints: EndpointTable = field(default_factory=environment_table)
    budgets: tuple[BudgetTerms, ...] = ()
    tools: Mapping[str, ToolSettings] = field(default_factory=dict)
    secrets: SecretValues = field(default_factory=SecretValues)
    http_tools: tuple[HttpToolSettings, ...] = ()
    mcp_servers: Mapping[int, McpServerSettings] = field(default_factory=dict)
    plugins: tuple[PluginSettings, ...] = ()
    pauses: Mapping[ChatAddress, Pause] = field(default_factory=dict)
    """Where an account cannot speak, which nobody set."""
    stickers: int = 0
    """How many may be sent."""
    reminders: ReminderNews = field(default_factory=lambda: ReminderNews(is_any=False))


#: Reads one part again. The others stay as they are.
Loader = Callable[[Settings], Settings]


def load_reminder_news() -> ReminderNews:
    """Whether any reminder waits, or is on its way."""
    is_open = Q(next_at__isnull=False) | Q(fired__isnull=False)
    return ReminderNews(Reminder._base_manager.filter(is_open).exists())


def _read_installation(known: Settings) -> Settings:
    clock, said = load_installation()
    obey(said)  # before other rows are read, which are judged by it
    return replace(known, clock=clock, said=known.said if said == known.said else said)


def _read_personas(known: Settings) -> Settings:
    personas = replace(load_personas(), chosen=known.personas.chosen)
    endpoints = replace(known.endpoints, defaults=personas.usual_endpoints)
    return replace(known, personas=personas, endpoints=endpoints)


LOADERS: tuple[tuple[Loader, tuple[LiveKind, ...]], ...] = (
    (_read_installation, (LiveKind.INSTALLATION,)),
    (lambda known: replace(known, manners=load_manners_table()), (LiveKind.MANNERS,)),
    (lambda known: replace(known, event_rules=load_event_rules()), (LiveKind.EVENT_RULES,)),
    (_read_personas, (LiveKind.PERSONAS,)),
    (
        lambda known: replace(known, personas=replace(known.personas, chosen=load_chosen())),
        (LiveKind.PERSONA_CHOICES,),
    ),
    (
        lambda known: replace(known, endpoints=load_endpoint_rows(known.endpoints.defaults)),
        (LiveKind.ENDPOINTS, LiveKind.LEARNT),
    ),
    (lambda known: replace(known, tools=load_tool_settings()), (LiveKind.TOOLS,)),
)
"""What every record reads, each with the kinds of rows of which it is made."""
