from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _

from agent.record.ground.idle_transactions import limit_idle_transaction


class AgentConfig(AppConfig):
    name = "agent"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        connection_created.connect(limit_idle_transaction)
