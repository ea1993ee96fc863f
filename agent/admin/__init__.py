"""The read-only pages of the record, and the pages of the tools and their use."""

from agent.admin.acts import OperatorActAdmin
from agent.admin.approvals import ApprovalAdmin
from agent.admin.budgets import BudgetAdmin, SpendSumAdmin
from agent.admin.chats.messages import MessageAdmin
from agent.admin.chats.sessions import ChatSessionAdmin
from agent.admin.descriptions import DescriptionAdmin
from agent.admin.endpoints import EndpointAdmin
from agent.admin.installation import InstallationAdmin
from agent.admin.kept_files import KeptFileAdmin
from agent.admin.manners import MannersAdmin
from agent.admin.media_files import MediaFileAdmin
from agent.admin.note_proposals import DigestAdmin, NoteProposalAdmin
from agent.admin.notes import NoteAdmin
from agent.admin.persona_places import PlaceAdmin
from agent.admin.personas import PersonaAdmin
from agent.admin.runs.calls import ToolCallAdmin
from agent.admin.runs.run_page import RunAdmin
from agent.admin.runs.steps import StepAdmin
from agent.admin.stickers import StickerAdmin
from agent.admin.tools import ToolPageAdmin

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
