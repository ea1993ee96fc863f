from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OneBotConfig(AppConfig):
    name = "onebot"
    verbose_name = _("OneBot")
