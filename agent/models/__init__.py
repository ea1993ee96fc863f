"""The record: what was said, why it was answered or not, and what came of it.

The record is also the inbox. A message is committed with its decision before
anything else happens to it, and a message in state ``waiting`` or ``running``
is work that a restarted server takes up again.
"""

from agent.models.activity import ActivitySum, ToolUse
from agent.models.alert import AlertNotice, AlertRoute
from agent.models.approval import Approval
from agent.models.chat_event import ChatEvent
from agent.models.digest import Digest
from agent.models.endpoint import EndpointChoice, EndpointStatus, ModelEndpoint
from agent.models.event_rule import EventRule
from agent.models.installation import Installation
from agent.models.manners import Manners
from agent.models.media import Description, KeptFile, MediaFile, MessageMedia, ResultPicture
from agent.models.message import UNSETTLED, Message
from agent.models.note import Note, NoteProposal
from agent.models.operator import ChatGrant, ErasureReceipt, OperatorAct
from agent.models.persona import Persona, PersonaChoice, PersonaPicture
from agent.models.process import CommitMark, ServerProcess
from agent.models.reminder import Reminder
from agent.models.request import JoinRequest, RequestRule
from agent.models.run import Run, Step, ToolOffer
from agent.models.session import ChatSession
from agent.models.spend import Budget, BudgetNotice, BudgetStop, SpendSum
from agent.models.sticker import Sticker
from agent.models.tally import Tally
from agent.models.tool_call import ToolCall
from agent.models.undo import UndoStep

__all__ = [
    "UNSETTLED",
    "ActivitySum",
    "AlertNotice",
    "AlertRoute",
    "Approval",
    "Budget",
    "BudgetNotice",
    "BudgetStop",
    "ChatEvent",
    "ChatGrant",
    "ChatSession",
    "CommitMark",
    "Description",
    "Digest",
    "EndpointChoice",
    "EndpointStatus",
    "ErasureReceipt",
    "EventRule",
    "Installation",
    "JoinRequest",
    "KeptFile",
    "Manners",
    "MediaFile",
    "Message",
    "MessageMedia",
    "ModelEndpoint",
    "Note",
    "NoteProposal",
    "OperatorAct",
    "Persona",
    "PersonaChoice",
    "PersonaPicture",
    "Reminder",
    "RequestRule",
    "ResultPicture",
    "Run",
    "ServerProcess",
    "SpendSum",
    "Step",
    "Sticker",
    "Tally",
    "ToolCall",
    "ToolOffer",
    "ToolUse",
    "UndoStep",
]
