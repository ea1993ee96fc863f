"""The read-only pages of the record, and the pages of the tools and their use: each module
registers its own."""

from agent.admin import approvals, budgets, installation, records
from agent.admin.chats import messages, sessions
from agent.admin.endpoints import page as endpoint_page
from agent.admin.manners import page as manners_page
from agent.admin.media import files, stickers
from agent.admin.notes import page as note_page, proposals
from agent.admin.personas import choices as persona_choices, page as persona_page
from agent.admin.runs import run_page
from agent.admin.tools import page as tool_page

__all__ = [
    "approvals",
    "budgets",
    "endpoint_page",
    "files",
    "installation",
    "manners_page",
    "messages",
    "note_page",
    "persona_choices",
    "persona_page",
    "proposals",
    "records",
    "run_page",
    "sessions",
    "stickers",
    "tool_page",
]
