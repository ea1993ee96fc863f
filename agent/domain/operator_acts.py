"""What operators do in chats, as the record names it."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class ActKind(TextChoices):
    SILENCE = "silence", _("silenced the chat")
    SPEAK = "speak", _("let the chat speak")
    LIFT = "lift", _("lifted the pause")
    RESET = "reset", _("reset the context")
    PERSONA = "persona", _("chose a persona")
    ANSWER = "answer", _("answered by hand")
    TAKE_OVER = "take_over", _("took over")
    HAND_BACK = "hand_back", _("handed back")
    RESEND = "resend", _("sent again")
    CANCEL = "cancel", _("cancelled the run")
    ASK_AGAIN = "ask_again", _("asked again without sending")
    EXPORT = "export", _("exported the chat")
    ERASE = "erase", _("erased a person")
