"""The read-only pages of the record, and the pages of the tools and their use."""

from agent.admin.approvals import ApprovalAdmin
from agent.admin.budgets import BudgetAdmin
from agent.admin.chats.messages import MessageAdmin
from agent.admin.chats.sessions import ChatSessionAdmin
from agent.admin.endpoints.page import EndpointAdmin
from agent.admin.installation import InstallationAdmin
from agent.admin.manners.page import MannersAdmin
from agent.admin.media.files import MediaFileAdmin
from agent.admin.media.stickers import StickerAdmin
from agent.admin.notes.page import NoteAdmin
from agent.admin.notes.proposals import NoteProposalAdmin
from agent.admin.personas.page import PersonaAdmin
from agent.admin.personas.places import PlaceAdmin
from agent.admin.records import (
    DescriptionAdmin,
    DigestAdmin,
    KeptFileAdmin,
    OperatorActAdmin,
    SpendSumAdmin,
    StepAdmin,
    ToolCallAdmin,
)
from agent.admin.runs.run_page import RunAdmin
from agent.admin.tools.page import ToolPageAdmin

__all__ = [
    "ApprovalAdmin",
    "BudgetAdmin",
    "ChatSessionAdmin",
    "DescriptionAdmin",
    "DigestAdmin",
    "EndpointAdmin",
    "InstallationAdmin",
    "KeptFileAdmin",
    "MannersAdmin",
    "MediaFileAdmin",
    "MessageAdmin",
    "NoteAdmin",
    "NoteProposalAdmin",
    "OperatorActAdmin",
    "PersonaAdmin",
    "PlaceAdmin",
    "RunAdmin",
    "SpendSumAdmin",
    "StepAdmin",
    "StickerAdmin",
    "ToolCallAdmin",
    "ToolPageAdmin",
]
