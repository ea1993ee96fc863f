"""What kinds of events and roles of connections are called. Kinds that no standard names keep the
client's word."""

from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.translation import pgettext_lazy

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


def name_roles(roles: str) -> str:
    """The roles of an account's connections."""
    written = [ROLES.get(one.casefold(), one) for one in roles.replace(",", " ").split()]
    return format_html_join(", ", "{}", ((one,) for one in written)) or "-"
