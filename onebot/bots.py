"""Keeping the rows of the bot accounts true: database functions, many requests at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from onebot.events import OtherEvent
from onebot.models import Bot, ClientEvent


@dataclass(frozen=True, slots=True)
class BotChange:
    """New values for the row of ``self_id``."""

    self_id: str
    values: dict[str, Any] = field(default_factory=dict)
    only_channel: str | None = None
    """Change nothing if another process has taken the account over since."""


def change(changes: Sequence[BotChange]) -> list[None]:
    """Store ``changes``, several of one account as one."""
    for one in _merged(changes):
        rows = Bot.objects.filter(self_id=one.self_id)
        if one.only_channel is not None:
            rows = rows.filter(channel=one.only_channel)
        if not rows.update(**one.values) and one.only_channel is None:
            Bot.objects.update_or_create(self_id=one.self_id, defaults=one.values)
    return [None] * len(changes)


def _merged(changes: Sequence[BotChange]) -> list[BotChange]:
    merged: dict[tuple[str, str | None], BotChange] = {}
    for one in changes:
        earlier = merged.pop((one.self_id, one.only_channel), None)
        values = {**earlier.values, **one.values} if earlier else one.values
        merged[one.self_id, one.only_channel] = BotChange(one.self_id, values, one.only_channel)
    return list(merged.values())


def connected(self_id: str, roles: str, user_agent: str, channel: str) -> BotChange:
    values = {
        "online": True,
        "roles": roles,
        "implementation": user_agent,
        "connected_at": timezone.now(),
        "disconnected_at": None,
        "account_online": None,
        "channel": channel,
    }
    return BotChange(self_id, values)


def disconnected(self_id: str, channel: str) -> BotChange:
    values = {"online": False, "roles": "", "disconnected_at": timezone.now()}
    return BotChange(self_id, values, only_channel=channel)


def heartbeat(self_id: str, *, account_online: bool | None) -> BotChange:
    return BotChange(self_id, {"last_heartbeat_at": timezone.now(), "account_online": account_online})


def keep_events(events: Sequence[tuple[OtherEvent, datetime]]) -> list[None]:
    """Store what is neither a message nor a sign of life."""
    ClientEvent.objects.bulk_create(
        ClientEvent(
            self_id=event.self_id[:64],
            post_type=event.post_type[:64],
            detail_type=event.detail_type[:64],
            sub_type=event.sub_type[:64],
            raw=event.raw,
            created_at=at,
        )
        for event, at in events
    )
    return [None] * len(events)


def forget_connections(requests: Sequence[None]) -> list[None]:
    """At the start of a process that is alone: nobody is connected yet, whatever the rows say."""
    Bot.objects.filter(online=True).update(online=False, roles="", disconnected_at=timezone.now())
    return [None] * len(requests)


def load_owners() -> dict[str, frozenset[str]]:
    """The people each account belongs to."""
    return {bot.self_id: bot.owner_ids for bot in Bot.objects.exclude(owners="").only("self_id", "owners")}


def online_accounts(requests: Sequence[None]) -> list[dict[str, str]]:
    """The channel of the process that holds each connected account, once per request."""
    found = dict(Bot.objects.filter(online=True).values_list("self_id", "channel"))
    return [found] * len(requests)
