"""Bots: which accounts are connected, by which client, since when, and what else the clients
reported."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.validators import MaxLengthValidator, MinLengthValidator, RegexValidator
from django.db import models
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy as _, pgettext_lazy

from agent.access import NOTHING
from agent.domain.types import is_playground
from agent.models import Manners, Message
from agent.models.manners import LIMITS, LISTS
from agent.models.scope import rank_row
from agent.pages.manners import EVERY_ACCOUNT, choose_url, list_said, scope_words
from agent.pages.own_chats import OwnAccountsAdmin
from agent.record.settings.chat_manners import find_account_manners
from agent.record.settings.personas import load_persona_table
from onebot.connections import handshake
from onebot.models import Bot, ClientEvent
from onebot.protocol.events import OtherEvent
from onebot.protocol.notices import read_notice
from tools.admin.fields import choosing
from tools.admin.record_pages import (
    Column,
    RecordAdmin,
    RecordedSince,
    choice_filter,
    format_moment,
    render_badge,
    with_less,
)
from tools.admin.settings_page import SettingsAdmin, SettingsForm
from tools.models import ToolConfig
from tools.models.tool_config import ApprovalMode
from tools.text.readable import escape_invisible_chars, json_block

#: Clients by what their name holds.
CLIENTS = {
    "napcat": "NapCat",
    "snowluma": "SnowLuma",
    "gensokyo": "Gensokyo",
    "onebots": "onebots",
    "llonebot": "LLBot",
    "llbot": "LLBot",
    "lagrange": "Lagrange.OneBot",
    "cqhttp": "go-cqhttp",
}
#: What happened to an account itself, of which its page shows the newest.
OF_ACCOUNTS, MOST_OF_ACCOUNT = ("bot_offline", "bot_online", "heartbeat_lost"), 5
#: Characters of a client's name that a line shows.
SHOWN_CHARS = 60


def nickname_of(bot: Bot) -> str:
    """What the client says the account is called; "" where it says nothing."""
    return escape_invisible_chars(bot.nickname)


def account_words(bot: Bot) -> str:
    """An account in a sentence: its nickname if it has one, and its number."""
    nickname = nickname_of(bot)
    return f"{nickname} ({bot.self_id})" if nickname else bot.self_id


def client_words(bot: Bot) -> str:
    """The client as people call it: by what it said when it was asked, or else when it dialled
    in."""
    said = bot.client_name or bot.implementation
    name, _slash, version = said.partition("/")
    for known, words in CLIENTS.items():
        if known in name.lower():
            return escape_invisible_chars(f"{words} {version}".strip())[:SHOWN_CHARS]
    if name.lower() in ("", "onebot"):
        return gettext("a client that does not say its name")
    return escape_invisible_chars(said)[:SHOWN_CHARS]


# What kinds of events and roles of connections are called. Kinds that no standard names keep the
# client's word.

KINDS: dict[str, Any] = {
    "message": pgettext_lazy("kind of event", "message"),
    "message_sent": pgettext_lazy("kind of event", "message by hand"),
    "notice": pgettext_lazy("kind of event", "notice"),
    "request": pgettext_lazy("kind of event", "request"),
    "meta_event": pgettext_lazy("kind of event", "about the client"),
    "friend": pgettext_lazy("kind of event", "friend"),
    "group": pgettext_lazy("kind of event", "group"),
    "group_upload": pgettext_lazy("kind of event", "file in a group"),
    "group_admin": pgettext_lazy("kind of event", "administrators of a group"),
    "group_decrease": pgettext_lazy("kind of event", "somebody left a group"),
    "group_increase": pgettext_lazy("kind of event", "somebody joined a group"),
    "group_ban": pgettext_lazy("kind of event", "mute in a group"),
    "group_card": pgettext_lazy("kind of event", "card in a group"),
    "group_name": pgettext_lazy("kind of event", "name of a group"),
    "group_title": pgettext_lazy("kind of event", "title in a group"),
    "group_recall": pgettext_lazy("kind of event", "message taken back in a group"),
    "group_msg_emoji_like": pgettext_lazy("kind of event", "reaction in a group"),
    "friend_add": pgettext_lazy("kind of event", "new friend"),
    "friend_recall": pgettext_lazy("kind of event", "message taken back by a friend"),
    "offline_file": pgettext_lazy("kind of event", "file of a friend"),
    "client_status": pgettext_lazy("kind of event", "other clients of the account"),
    "bot_offline": pgettext_lazy("kind of event", "account offline"),
    "bot_online": pgettext_lazy("kind of event", "account online"),
    "essence": pgettext_lazy("kind of event", "essence message"),
    "notify": pgettext_lazy("kind of event", "sign"),
    "poke": pgettext_lazy("kind of event", "poke"),
    "lucky_king": pgettext_lazy("kind of event", "luckiest red packet"),
    "honor": pgettext_lazy("kind of event", "honour in a group"),
    "title": pgettext_lazy("kind of event", "title"),
    "input_status": pgettext_lazy("kind of event", "somebody writes"),
    "profile_like": pgettext_lazy("kind of event", "like of the profile"),
    "lifecycle": pgettext_lazy("kind of event", "life of the client"),
    "heartbeat": pgettext_lazy("kind of event", "heartbeat"),
    "heartbeat_lost": pgettext_lazy("kind of event", "heartbeats stopped, connection closed"),
    "connect": pgettext_lazy("kind of event", "connected"),
    "enable": pgettext_lazy("kind of event", "switched on"),
    "disable": pgettext_lazy("kind of event", "switched off"),
    "set": pgettext_lazy("kind of event", "appointed"),
    "unset": pgettext_lazy("kind of event", "dismissed"),
    "leave": pgettext_lazy("kind of event", "left"),
    "kick": pgettext_lazy("kind of event", "was kicked"),
    "kick_me": pgettext_lazy("kind of event", "the bot was kicked"),
    "approve": pgettext_lazy("kind of event", "was let in"),
    "invite": pgettext_lazy("kind of event", "invited"),
    "add": pgettext_lazy("kind of event", "added"),
    "delete": pgettext_lazy("kind of event", "deleted"),
    "ban": pgettext_lazy("kind of event", "muted"),
    "lift_ban": pgettext_lazy("kind of event", "no longer muted"),
}
ROLES: dict[str, Any] = {
    "universal": pgettext_lazy("role of a connection", "both"),
    "api": pgettext_lazy("role of a connection", "actions"),
    "event": pgettext_lazy("role of a connection", "events"),
}


def name_kind(kind: str) -> str:
    """A kind of event in the reader's words, with the standard's word below."""
    if not kind:
        return "-"
    if kind not in KINDS:
        return format_html("<code>{}</code>", kind)
    return format_html('{} <code class="quiet">{}</code>', KINDS[kind], kind)


# The form of a bot's page: its columns, and how its own access token is made, typed or taken away.


class TokenChange(models.TextChoices):
    KEEP = "", _("leave it as it is")
    MAKE = "make", _("make a new one; it is shown once, after saving")
    TYPE = "type", _("take the one typed below")
    CLEAR = "clear", _("none of its own: the common one counts")


class BotForm(SettingsForm):
    """``made_token`` is what was made up here, for the page after saving to show once."""

    token_change = forms.ChoiceField(
        label=_("Change the access token"),
        choices=TokenChange.choices,
        required=False,
        help_text=_(
            "With a token of its own, this account can be connected with that token alone, and "
            "the token is good for no"
            " other account. A change closes the connection that the old token opened."
        ),
    )
    token_typed = forms.CharField(
        label=_("Own access token"),
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        validators=[
            MinLengthValidator(handshake.SHORTEST),
            MaxLengthValidator(handshake.LONGEST),
            RegexValidator(r"^[!-~]+\Z", _("Letters, digits and signs of ASCII, without spaces.")),
        ],
        help_text=_("Sixteen characters or more. It is kept as a hash and cannot be shown again."),
    )
    made_token = ""

    class Meta:
        model = Bot
        exclude = ()  # the page names its fields
        help_texts: ClassVar = {
            "hear_voice": _(
                "Whose voice messages the model is given in words. A model endpoint that "
                "transcribes writes them down, or the model of TRANSCRIBE_MODEL_NAME in .env; "
                "without either none are heard."
            )
        }
        widgets: ClassVar = {"owners": forms.Textarea(attrs=choosing("person", rows=2, cols=40))}

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

    def save(self, commit: bool = True) -> Any:
        """Give the row the hash of its new token, and keep the token only where it was made up
        here."""
        match self.cleaned_data.get("token_change"):
            case TokenChange.MAKE:
                self.made_token = handshake.make_account_token()
                self.instance.token_hash = handshake.hash_token(self.made_token)
            case TokenChange.TYPE:
                self.instance.token_hash = handshake.hash_token(self.cleaned_data["token_typed"])
            case TokenChange.CLEAR:
                self.instance.token_hash = ""
        return super().save(commit)


CannotSpeak = choice_filter(
    _("hears and cannot speak"),
    "voice",
    lambda _request: [("none", _("yes"))],
    lambda rows, _value: rows.filter(cannot_speak_since__isnull=False),
)


@admin.register(Bot)
class BotAdmin(OwnAccountsAdmin, SettingsAdmin, RecordAdmin):
    rights = frozenset({"change"})  # owners are people's decision, and no record
    account_field = "self_id"
    form = BotForm
    list_display = ("name", "connected", "account_state", "heartbeat", "client", "chats")
    list_filter = ("online", CannotSpeak)
    are_few = True
    ordering = ("-online", "self_id")
    text_fields = ("self_id", "second_name", "nickname", "client_name", "implementation")
    search_help_text: ClassVar = _("Part of an account's id or nickname, or of the client's name.")
    #: What the program writes: what is asked first, and the rest.
    state_fields = ("called", "online", "account_online", "chats")
    connection_fields = (
        *("lately", "self_id", "second_name", "client", "kinds_of_connection", "user_agent"),
        *("connected_at", "disconnected_at", "silent_at", "cannot_speak_since"),
        *("last_heartbeat_at", "channel", "token_state"),
    )
    first_fields = (*state_fields, "owners", "personas", "answers", "manners")
    more_fields: ClassVar = (
        (
            _("What it hears, and how often it speaks"),
            (
                *("all_for_me", "hear_voice", "read_files", "timing_gate", "media_by_url"),
                "sends_per_minute",
            ),
        ),
        (_("Connection"), connection_fields),
        (_("Access token"), ("token_change", "token_typed")),
    )
    readonly_fields = (*state_fields, *connection_fields, "personas", "answers", "manners")
    # Users who may only view get no input for the token: it is not a field of the model.
    unseen: ClassVar = {"token_change": "", "token_typed": ""}
    change_form_template = "admin/onebot/bot/change_form.html"
    columns: ClassVar = {
        "name": Column(_("account"), lambda bot: _name(bot), admin_order_field="self_id"),
        # a playground that is closed is no bot that is away
        "connected": Column(
            _("connected"),
            lambda bot: None if is_playground(bot.self_id) else bot.online,
            admin_order_field="online",
            boolean=True,
        ),
        # what the client last said, while it is there to say it
        "account_state": Column(
            _("account online"),
            lambda bot: bot.account_online if bot.online else None,
            boolean=True,
        ),
        "kinds_of_connection": Column(
            _("roles"),
            lambda bot: (
                format_html_join(
                    ", ",
                    "{}",
                    (
                        (ROLES.get(one.casefold(), one),)
                        for one in bot.roles.replace(",", " ").split()
                    ),
                )
                or "-"
            ),
        ),
        "called": Column(
            _("nickname"), lambda bot: nickname_of(bot) or find_nickname(bot.self_id) or "-"
        ),
        "client": Column(_("client"), client_words),
        # what it introduced itself with when it dialled in
        "user_agent": Column("User-Agent", lambda bot: bot.implementation or "-"),
        "heartbeat": Column(_("last heartbeat"), lambda bot: format_moment(bot.last_heartbeat_at)),
        "token_state": Column(
            _("access token"),
            lambda bot: (
                gettext("one of its own")
                if bot.token_hash
                else gettext("the common one (ONEBOT_ACCESS_TOKEN)")
            ),
        ),
        "lately": Column(_("what happened to it"), lambda bot: _lately(bot)),
        "chats": Column(
            _("chat sessions"),
            lambda bot: format_html(
                '<a href="{}?{}">{}</a>',
                reverse("admin:agent_chatsession_changelist"),
                urlencode({"account": bot.self_id}),
                _("show"),
            ),
        ),
        "personas": Column(_("who answers"), lambda bot: _personas(bot)),
        "manners": Column(_("manners"), lambda bot: _manners(bot)),
        "answers": Column(_("who is answered"), lambda bot: _answers(bot)),
    }

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Calls that wait for an owner wait in vain where there is none."""
        page = super().page_context(request, obj)
        is_asked = obj and not obj.owners.strip() and not is_playground(obj.self_id)
        rows = ToolConfig.objects.filter(enabled=True).exclude(requires_approval=ApprovalMode.NEVER)
        asking = [
            row.name
            for row in rows.only("name", "requires_approval", "declaration")
            if row.requires_approval == ApprovalMode.ALWAYS
            or row.declaration.get("requires_approval")
        ]
        return {**page, "asking_tools": asking if is_asked else []}

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """An account that is retired, one at a time: else the first page reminds of it for ever."""
        is_away = isinstance(obj, Bot) and not obj.online
        return is_away and request.user.has_perm("onebot.change_bot")

    def formfield_for_choice_field(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        """None of the choices is empty, though a form may leave the field out."""
        return super().formfield_for_choice_field(
            db_field, request, **options | {"choices": db_field.get_choices(include_blank=False)}
        )

    def save_model(self, request: HttpRequest, obj: Bot, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if made := getattr(form, "made_token", ""):
            text = _(
                "The new token of account %(account)s, shown only now: %(token)s. Enter it in the "
                "client of this account."
            )
            self.message_user(
                request, text % {"account": obj.self_id, "token": made}, messages.WARNING
            )


def _name(bot: Bot) -> str:
    if is_playground(bot.self_id):
        return format_html("{} {}", bot.self_id, render_badge("mock", gettext("playground")))
    nickname = nickname_of(bot) or find_nickname(bot.self_id)
    name = with_less(nickname, bot.self_id) if nickname else bot.self_id
    if bot.cannot_speak_since is None:
        return name
    return format_html("{} {}", name, render_badge("failed", gettext("cannot speak")))


def _lately(bot: Bot) -> str:
    """When the account went offline or came back, and what the client says of it."""
    rows = ClientEvent.objects.filter(self_id=bot.self_id, detail_type__in=OF_ACCOUNTS)
    lines = []
    for row in rows.order_by("-pk")[:MOST_OF_ACCOUNT]:
        event = OtherEvent(row.self_id, row.post_type, row.detail_type, row.sub_type, row.raw)
        notice = read_notice(event, bot.self_id)
        words = escape_invisible_chars(notice.words) if notice else ""
        lines.append((format_moment(row.created_at), name_kind(row.detail_type), words))
    return format_html_join("", "<div>{} {} <bdi>{}</bdi></div>", lines) or "-"


def _personas(bot: Bot) -> str:
    """The persona of the whole account, and how many of its chats and people have others."""
    found = load_persona_table()
    keys = ((account, "", "", "") for account in (bot.self_id, ""))
    row = next(filter(None, (found.by_pk.get(found.chosen.get(key, 0)) for key in keys)), None)
    return format_html(
        '{} · <a href="{}">{}</a> · <a href="{}?{}">{} ({})</a>',
        row.name if row else _("Default persona"),
        choose_url({"account": bot.self_id}),
        _("choose another"),
        reverse("admin:agent_personachoice_changelist"),
        urlencode({"q": bot.self_id}),
        _("elsewhere"),
        sum(key[0] == bot.self_id and any(key[1:]) for key in found.chosen),
    )


def _manners(bot: Bot) -> str:
    """How many rows are for this account alone, and for every account."""
    if not getattr(bot, "access", NOTHING).is_everything:
        return "-"
    address = reverse("admin:agent_manners_changelist")
    own, common = (Manners.objects.filter(account=one).count() for one in (bot.self_id, ""))
    row = find_account_manners(bot.self_id)
    query = urlencode({"account": bot.self_id, "name": bot.self_id})
    return format_html(
        '<a href="{}">{}</a> · <a href="{}?{}">{} ({})</a> · <a href="{}?{}">{} ({})</a>',
        *(reverse("admin:agent_manners_change", args=[row.pk]), _("change"))
        if row
        else (f"{reverse('admin:agent_manners_add')}?{query}", _("add")),
        *(address, urlencode({"account": bot.self_id}), _("of this account"), own),
        *(address, urlencode({"account": EVERY_ACCOUNT}), _("of every account"), common),
    )


def _answers(bot: Bot) -> str:
    """What manners of this account alone say of it, also for those who may not open them."""
    lines = [
        (scope_words(row), said.label, said.words)
        for row in sorted(Manners.objects.filter(enabled=True, account=bot.self_id), key=rank_row)
        for said in list_said(row)
        if said.field in (*("answered", *LISTS), *LIMITS)
    ]
    return format_html_join("", "<div>{}: {}: {}</div>", lines) or gettext(
        "as said for every account"
    )


def find_nickname(account: str) -> str:
    """The name that the account last went by in a chat; "" where it was not heard."""
    own = Message.objects.filter(sender_id=account, session__account=account)
    names = own.exclude(sender_name="").order_by("-pk").values_list("sender_name", flat=True)
    return str(names.first() or "")


@admin.register(ClientEvent)
class ClientEventAdmin(OwnAccountsAdmin, RecordAdmin):
    account_field = "self_id"
    list_display = ("recorded", "self_id", "post_kind", "detail_kind", "sub_kind")
    list_filter = (RecordedSince,)
    list_defer = ("raw",)
    text_fields = ("self_id", "post_type", "detail_type", "sub_type")
    fields = ("self_id", "post_kind", "detail_kind", "sub_kind", "created_at", "event_json")
    columns: ClassVar = {
        "recorded": Column(_("recorded at"), lambda event: format_moment(event.created_at)),
        "post_kind": Column(_("post type"), lambda event: name_kind(event.post_type)),
        "detail_kind": Column(_("type"), lambda event: name_kind(event.detail_type)),
        "sub_kind": Column(_("sub type"), lambda event: name_kind(event.sub_type)),
        "event_json": Column(_("event"), lambda event: json_block(event.raw)),
    }
