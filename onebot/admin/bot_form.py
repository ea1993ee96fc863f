"""The form of a bot's page: its columns, and how its own access token is made, typed or taken
away."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.validators import MaxLengthValidator, MinLengthValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from onebot.connections import account_tokens
from onebot.models import Bot

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Bot]
else:
    ModelForm = forms.ModelForm


class TokenChange(models.TextChoices):
    KEEP = "", _("leave it as it is")
    MAKE = "make", _("make a new one; it is shown once, after saving")
    TYPE = "type", _("take the one typed below")
    CLEAR = "clear", _("none of its own: the common one counts")


class BotForm(ModelForm):
    """``made_token`` is what was made up here, for the page after saving to show once."""

    token_change = forms.ChoiceField(
        label=_("change the access token"),
        choices=TokenChange.choices,
        required=False,
        help_text=_(
            "With a token of its own, this account can be connected with that token alone, and "
            "the token is good for no"
            " other account. A change closes the connection that the old token opened."
        ),
    )
    token_typed = forms.CharField(
        label=_("own access token"),
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        validators=[
            MinLengthValidator(account_tokens.SHORTEST),
            MaxLengthValidator(account_tokens.LONGEST),
            RegexValidator(r"^[!-~]+\Z", _("Letters, digits and signs of ASCII, without spaces.")),
        ],
        help_text=_("Sixteen characters or more. It is kept as a hash and cannot be shown again."),
    )
    made_token = ""

    class Meta:
        model = Bot
        exclude = ()  # the page names its fields
        widgets: ClassVar = {
            name: forms.Textarea(attrs={"rows": 2, "cols": 40})
            for name in (
                *("owners", "listed_people", "listed_groups"),
                *("blocked_people", "blocked_groups"),
            )
        }

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        is_typed, typed = values.get("token_change") == TokenChange.TYPE, values.get("token_typed")
        if is_typed and not typed and "token_typed" not in self.errors:
            self.add_error("token_typed", _("Type the token, or choose another way to change it."))
        if typed and not is_typed:
            self.add_error(
                "token_change",
                _("A token was typed below: choose to take it, or empty that field."),
            )
        return values

    def save(self, commit: bool = True) -> Bot:
        """Give the row the hash of its new token, and keep the token only where it was made up
        here."""
        match self.cleaned_data.get("token_change"):
            case TokenChange.MAKE:
                self.made_token = account_tokens.make_account_token()
                self.instance.token_hash = account_tokens.hash_token(self.made_token)
            case TokenChange.TYPE:
                self.instance.token_hash = account_tokens.hash_token(
                    self.cleaned_data["token_typed"]
                )
            case TokenChange.CLEAR:
                self.instance.token_hash = ""
        return super().save(commit)
