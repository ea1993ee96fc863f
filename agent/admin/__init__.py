"""The read-only pages of the record, and the pages of the tools and their use: each module
registers its own."""

from agent.admin import (
    alerts,
    approvals,
    budgets,
    event_rules,
    manners,
    media,
    notes,
    personas,
    records,
    reminders,
    requests,
    tools,
)
from agent.admin.chats import messages, sessions
from agent.admin.endpoints import page as endpoint_page
from agent.admin.runs import run_page

__all__ = [
    "alerts",
    "approvals",
    "budgets",
    "endpoint_page",
    "event_rules",
    "manners",
    "media",
    "messages",
    "notes",
    "personas",
    "records",
    "reminders",
    "requests",
    "run_page",
    "sessions",
    "tools",
]
