"""Which persona answers in a chat, where it is chosen, and where rows of accounts are listed."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from agent.domain.types import ChatAddress
from agent.models import PersonaChoice
from agent.record.settings.personas import find_answering_row
from tools.admin.record_pages import record_link

#: What the filter of accounts calls the rows of manners for every account.
EVERY_ACCOUNT = "-"


def describe_answering(chat: ChatAddress, request: HttpRequest) -> dict[str, Any]:
    """For the page of a chat: the persona that answers there, and where another can be chosen."""
    row = find_answering_row(chat)
    fields = {
        "account": chat.account,
        "chat_kind": chat.kind,
        "peer_id": chat.peer_id,
        "user_id": "",
    }
    return {
        "persona": record_link("agent_persona", row.pk if row else 0, row)
        if request.user.has_perm("agent.view_persona")
        else row or _("Default persona"),
        "persona_url": choose_url(fields) if request.user.has_perm("agent.change_persona") else "",
    }


def choose_url(fields: dict[str, str]) -> str:
    """Where the persona of the choice with ``fields`` is chosen."""
    if known := PersonaChoice.objects.filter(**fields).first():
        return reverse("admin:agent_personachoice_change", args=(known.pk,))
    given = {name: value for name, value in fields.items() if value}
    return f"{reverse('admin:agent_personachoice_add')}?{urlencode(given)}"
