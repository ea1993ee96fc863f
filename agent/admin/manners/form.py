"""The form of a row of manners: what its fields show while they are empty, and examples of what to
write."""

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.manners import environment_manners
from agent.markdown.drawing_packages import explain_missing
from agent.models import Manners, ModelEndpoint
from agent.models.manners import LIMITS, LISTS
from tools.admin.settings_page import SettingsForm

#: Fields that show the program's own value in grey while they are empty.
SHOWN_EMPTY = (
    *("wake_chance", "ambient_messages", "ambient_chars", "ambient_minutes", "merge_seconds"),
    *("part_chars", "forward_above", "command_prefix", *LIMITS),
)
#: Those whose empty choice says it.
CHOICES = (
    *("groups", "wake_mention", "wake_quote", "wake_always", "typing", "says_beside_calls"),
    *("mention", "quote", "private", "answered", "markdown"),
)
_ROWS = {
    **dict.fromkeys(("chats", "wake_names", "wake_prefixes", "quiet_hours"), 3),
    **dict.fromkeys(LISTS, 3),
}


class MannersForm(SettingsForm):
    """A row of manners. What is wrong with a value is said beside its field, by the model."""

    class Meta:
        model = Manners
        exclude = ()
        widgets = {  # noqa: RUF012 - Django's own way to say it
            "account": forms.TextInput(attrs={"list": "accounts", "autocomplete": "off"}),
            "wake_pattern": forms.TextInput(attrs={"class": "vTextField template"}),
            **{name: forms.Textarea(attrs={"rows": rows}) for name, rows in _ROWS.items()},
        }
        help_texts = {  # noqa: RUF012 - as above
            "name": _("So that people find it again, such as “quiet at night”."),
            "chats": _(
                "One a line: group:123456 or private:20002. Empty: all chats of the account and "
                "kind. A row that lists a chat counts before one that does not."
            ),
            "silenced": _(
                "Nothing is said in these chats, whatever other rows say; what is said there is "
                "kept. Owners can still give commands."
            ),
            "quiet_hours": _(
                "One a line, for example 23:00-07:30 (over midnight) or 12:00-14:00, in the time "
                "zone of the server. Owners are answered all the same."
            ),
            "groups": _("No: groups are kept on record and never answered."),
            "wake_names": _(
                "One a line, for example 小霜: a message of a group that holds it is answered, "
                "whatever its case. “-”: none."
            ),
            "wake_prefixes": _(
                "One a line, for example # or 霜霜，: a message of a group that begins with it is "
                "answered. “-”: none."
            ),
            "wake_pattern": _(
                "A message of a group in which it is found is answered. For example 天气|下雨 "
                "(one of two words), ^请问 (at the beginning), [?？]$ (at the end). “-”: none."
            ),
            "wake_chance": _(
                "Of the other messages of a group, so many in a hundred are answered, for example "
                "2. 0: none."
            ),
            "wake_always": _("In groups. Take care: this can cost much."),
            "allowed_people": _(
                "Ids, one a line. Not empty: nobody else is answered in these chats, but for "
                "owners."
            ),
            "denied_people": _(
                "Ids, one a line. What they say is kept, and not answered. Those of all rows for a "
                "chat add up."
            ),
            "listed_people": _(
                "Ids of people, one a line: answered whoever else is. Those of all rows for a chat "
                "add up. Limits count for them."
            ),
            "ambient_chars": _("The newest of them that fit. 0: none are shown."),
            "ambient_minutes": _("Older ones are left out. 0: none are shown."),
            "part_chars": _("From 100 to 4500. A longer answer is sent in several messages."),
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        usual = environment_manners()
        self.show_unsaid("wake_names", usual.wake_names)
        for name in SHOWN_EMPTY:
            self.show_unsaid(name, getattr(usual, name), gettext("default %(value)s"))
        for name in CHOICES:
            value = getattr(usual, name)
            words = (
                gettext("not said here (else: as the persona says)")
                if value is None
                else gettext("not said here (else: %(value)s)")
            )
            self.show_unsaid(name, value, words)
        if "markdown" in self.fields:
            self.fields["markdown"].help_text = explain_missing()
        if "endpoint" in self.fields:
            usable = Q(can_chat=True, enabled=True) | Q(pk=self.instance.endpoint_id)  # or chosen
            self.fields["endpoint"].queryset = ModelEndpoint.objects.filter(usable)  # type: ignore[attr-defined]
