"""What an operator may set of a chat: its state, which the persona's prompt shows, its timing
gate, and the limits of answers in its own row of manners."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.chats.session_manners import session_address
from agent.domain.prompt_template import is_value_name
from agent.domain.state import (
    SIZE_LIMIT,
    TEMPORARY,
    StateChange,
    diff_states,
    is_same_json,
    stored_state_size,
)
from agent.models import ChatSession, Manners
from agent.models.manners import LIMITS
from agent.record.settings.chat_manners import find_chat_manners
from tools.admin.json_field import IndentedJSONField

#: Characters of a wrong name that its fault repeats.
NAME_SHOWN = 64

if TYPE_CHECKING:
    _Form = forms.ModelForm[ChatSession]
else:
    _Form = forms.ModelForm


def _own_limit(name: str, label: Any) -> Any:
    column: Any = Manners._meta.get_field(name)
    words = _("In this chat. 0: no limit. Empty: as other rows of manners say.")
    return column.formfield(label=label, help_text=words)


class StateForm(_Form):
    """The state as JSON. What the page showed is sent along, so that only what was changed there is
    saved."""

    person_per_minute = _own_limit("person_per_minute", _("answers to one person a minute"))
    person_per_day = _own_limit("person_per_day", _("answers to one person a day"))
    chat_per_minute = _own_limit("chat_per_minute", _("answers in this chat a minute"))
    chat_per_day = _own_limit("chat_per_day", _("answers in this chat a day"))

    state = IndentedJSONField(
        label=_("state"),
        required=False,
        show_hidden_initial=True,
        help_text=_(
            'What {placeholders} in the persona\'s prompt stand for in this chat: {"name": '
            '"value"}. The program itself knows'
            " bot_name, chat_kind, date, time and weekday. Tools may read and change these values."
        ),
    )

    class Meta:
        model = ChatSession
        fields = ("timing_gate", "state")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.initial.update(own_limits(self.instance))
        if gate := self.fields.get("timing_gate"):  # a page that only shows has none
            gate.widget = forms.NullBooleanSelect()
            gate.widget.choices = [
                ("unknown", _("as the bot's page says")),
                ("true", _("yes")),
                ("false", _("no")),
            ]
            gate.help_text = _("Whether a small model call decides first if and when to answer.")

    def changed_values(self, *names: str) -> dict[str, Any]:
        """The fields among ``names`` that were changed on the page; what a request leaves out, as a
        script's may, stays as it is."""
        return {
            name: self.cleaned_data[name]
            for name in names
            if name in self.changed_data and not self._is_omitted(name)
        }

    def _is_omitted(self, name: str) -> bool:
        widget: Any = self.fields[name].widget
        return bool(widget.value_omitted_from_data(self.data, self.files, self.add_prefix(name)))

    def clean_state(self) -> dict[str, Any]:
        """A request that leaves the field out, as a script's may, changes nothing; an emptied one
        empties the state."""
        if self._is_omitted("state"):
            return self._stored
        state = self.cleaned_data["state"]
        if problems := list(state_messages({} if state is None else state, self._stored)):
            raise ValidationError(problems)
        return state or {}

    def change(self) -> StateChange:
        """What was changed on the page, of a form that is valid."""
        return diff_states(self.instance.pk, self._shown(), self.cleaned_data["state"])

    @property
    def _stored(self) -> dict[str, Any]:
        state = self.initial.get("state")
        return state if isinstance(state, dict) else {}

    def _shown(self) -> dict[str, Any]:
        """The state when the page was made: a tool may have changed it since."""
        try:
            shown = self.fields["state"].clean(self.data.get(self.add_initial_prefix("state")))
        except ValidationError:
            shown = None
        return shown if isinstance(shown, dict) else self._stored


def own_limits(session: ChatSession) -> dict[str, int | None]:
    """The limits that the row of manners for this chat alone says."""
    row = find_chat_manners(session_address(session)) if session.pk else None
    return {name: getattr(row, name, None) for name in LIMITS}


def state_messages(state: Any, stored: Mapping[str, Any]) -> Iterator[str]:
    """The reasons why ``state`` cannot be saved, one translated line each.

    Values that people write are flat, as placeholders show them; a value that a tool stored may
    have any shape, and is accepted while it is unchanged.
    """
    if not isinstance(state, dict):
        yield gettext('Write an object: {"name": "value"}.')
        return
    written = {
        name: value
        for name, value in state.items()
        if name not in stored or not is_same_json(value, stored[name])
    }
    problems = [problem for name, value in written.items() if (problem := _problem(name, value))]
    yield from problems
    if not problems and (over := stored_state_size(state)) > SIZE_LIMIT:
        yield gettext("A state has room for %(limit)d bytes; this one has %(size)d.") % {
            "limit": SIZE_LIMIT,
            "size": over,
        }


def _problem(name: str, value: Any) -> str:
    """The error in one entry that a person wrote; "" if there is none."""
    if name.startswith(TEMPORARY):
        problem = gettext(
            "“%(name)s”: what begins with temp: is never stored; only tools set it, for one run."
        )
    elif not is_value_name(name):
        problem = gettext(
            "“%(name)s” is no name: write letters, digits and _, at most with app: or user: "
            "before them."
        )
    elif isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)):
        problem = gettext("“%(name)s” needs a text, a number, true, false or null.")
    else:
        problem = ""
    return problem % {"name": name[:NAME_SHOWN]}
