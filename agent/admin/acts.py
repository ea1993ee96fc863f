"""The list of what operators did in chats."""

from typing import ClassVar

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from agent.models import OperatorAct
from agent.pages.own_chats import OwnChatsAdmin
from tools.admin.record_pages import RecordAdmin, clamp_text, format_moment, record_link


@admin.register(OperatorAct)
class OperatorActAdmin(OwnChatsAdmin, RecordAdmin):
    list_display = ("moment", "author_name", "kind", "chat", "run_link", "words")
    list_select_related = ("session",)
    fields = ("moment", "author_name", "kind", "chat", "run_link", "words")
    search_help_text: ClassVar = _("The number of an act.")

    @admin.display(description=_("at"))
    def moment(self, act: OperatorAct) -> str:
        return format_moment(act.at)

    @admin.display(description=_("chat"))
    def chat(self, act: OperatorAct) -> str:
        return record_link("agent_chatsession", act.session_id, act.session) or "-"

    @admin.display(description=_("run"))
    def run_link(self, act: OperatorAct) -> str:
        return record_link("agent_run", act.run_id, f"#{act.run_id}") or "-"

    @admin.display(description=_("detail"))
    def words(self, act: OperatorAct) -> str:
        return clamp_text(act.detail_words)
