"""Keeping the rows of the bot accounts true: database functions, many requests at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast

from django.db.models import Exists, Q
from django.db.models.functions import Now
from django.utils import timezone

from agent.domain.types import AccountSettings, MediaAudience, MediaPolicy
from agent.models import ChatSession, ServerProcess
from agent.record.waiting import recovery
from agent.record.waiting.expiry import BATCH, EraseResult
from onebot.models import Bot, ClientEvent
from onebot.protocol.events import OtherEvent
from tools.live_rows import ConfigVersion, LiveKind


@dataclass(frozen=True, slots=True)
class BotChange:
    """New values for the row of ``self_id``."""

    self_id: str
    values: dict[str, object] = field(default_factory=dict)
    only_process: str | None = None
    """Change nothing while another process than this one holds the account."""
    only_channel: str | None = None
    """Change nothing unless this was the mailbox that was last told of the account."""
    instead_of: str = ""
    """The account's client calls it so: of what that was taken for, an empty row goes."""


def save_bot_changes(changes: Sequence[BotChange]) -> list[None]:
    """Store ``changes``, several of one account as one."""
    for one in _merged(changes):
        rows = Bot.objects.filter(self_id=one.self_id)
        if one.only_process is not None:
            rows = rows.filter(process__in=("", one.only_process))
        if one.only_channel is not None:
            rows = rows.filter(channel=one.only_channel)
        if not rows.update(**one.values) and one.only_process is None:
            Bot.objects.update_or_create(self_id=one.self_id, defaults=one.values)
        if one.instead_of:
            _drop_empty(one.instead_of)
            ConfigVersion.bump(LiveKind.ACCOUNTS)
    return [None] * len(changes)


def _merged(changes: Sequence[BotChange]) -> list[BotChange]:
    """Those of one account that follow one another as one: what it was must not come back over what
    it has become between them."""
    merged, newest = list[BotChange](), dict[str, int]()
    for one in changes:
        at = newest.get(one.self_id)
        if at is not None and _condition(merged[at]) == _condition(one):
            merged[at] = replace(one, values={**merged[at].values, **one.values})
        else:
            newest[one.self_id] = len(merged)
            merged.append(one)
    return merged


def _condition(change: BotChange) -> tuple[str | None, str | None, str]:
    return change.only_process, change.only_channel, change.instead_of


def _drop_empty(self_id: str) -> None:
    """Forget an account that was never there: nothing was said or heard as it, or entered for
    it."""
    if not ChatSession.objects.filter(account=self_id).exists():
        Bot.objects.filter(
            self_id=self_id, online=False, last_heartbeat_at=None, owners="", token_hash=""
        ).delete()


@dataclass(frozen=True, slots=True)
class ProcessMailbox:
    """A server process, and the mailbox it listens to on the channel layer ("" for none)."""

    process: str
    channel: str


def connected_change(
    self_id: str, roles: str, user_agent: str, holder: ProcessMailbox | None
) -> BotChange:
    """The account has a socket; ``holder`` is who writes actions to it, None where it takes
    none."""
    values: dict[str, object] = {
        "online": True,
        "roles": roles,
        "implementation": user_agent,
        "connected_at": timezone.now(),
        "disconnected_at": None,
        "account_online": None,
        "silent_at": None,
    }
    if holder is not None:
        values |= {"process": holder.process, "channel": holder.channel}
    return BotChange(self_id, values)


def kept_change(self_id: str, roles: str, holder: ProcessMailbox) -> BotChange:
    """The account's sockets in ``holder`` have lived on, although another process took that one
    for dead; nothing is changed where the account has connected elsewhere since."""
    values = {
        "online": True,
        "roles": roles,
        "disconnected_at": None,
        "process": holder.process,
    }
    return BotChange(self_id, values, only_process="", only_channel=holder.channel)


def named_change(self_id: str, name: str) -> BotChange:
    """The account's client calls it ``name`` when it dials in."""
    return BotChange(self_id, {"second_name": name}, instead_of=name)


def introduced_change(self_id: str, nickname: str, client_name: str, process: str) -> BotChange:
    """What the client in ``process`` said when it was asked who it is. An account keeps its name
    where nobody says another; the name of an earlier client is forgotten."""
    known = {"nickname": nickname} if nickname else {}
    return BotChange(self_id, {"client_name": client_name, **known}, only_process=process)


def offline_values() -> dict[str, object]:
    return {
        "online": False,
        "account_online": None,  # its heartbeat says nothing any more
        "roles": "",
        "disconnected_at": timezone.now(),
        "process": "",
        "channel": "",
    }


def disconnected_change(self_id: str, process: str) -> BotChange:
    return BotChange(self_id, offline_values(), only_process=process)


def note_voice(self_id: str, since: datetime | None) -> None:
    """The account cannot speak ``since`` then, where events have come since; None: it can again."""
    rows = Bot.objects.filter(self_id=self_id, cannot_speak_since__isnull=since is not None)
    if since is not None:
        talked = ChatSession.objects.filter(account=self_id, last_message_at__gte=since)
        noted = ClientEvent.objects.filter(self_id=self_id, created_at__gte=since)
        rows = rows.filter(Q(last_heartbeat_at__gte=since) | Exists(talked) | Exists(noted))
    if rows.update(cannot_speak_since=since):
        ConfigVersion.bump(LiveKind.ACCOUNTS)


def heartbeat_change(self_id: str, *, account_online: bool | None) -> BotChange:
    return BotChange(
        self_id, {"last_heartbeat_at": timezone.now(), "account_online": account_online}
    )


def save_client_events(events: Sequence[tuple[OtherEvent, datetime]]) -> list[None]:
    """Store an event that is neither a message nor a heartbeat."""
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


def erase_client_events(before: datetime, history: int, after: int) -> EraseResult:
    """Erase client events that are too old, the oldest first."""
    rows = list(
        ClientEvent.objects.filter(pk__gt=after)
        .order_by("pk")
        .values_list("pk", "created_at")[:BATCH]
    )
    going = [pk for pk, created_at in rows if created_at < before]
    count, _ = ClientEvent.objects.filter(pk__in=going).delete()
    return EraseResult(count, rows[-1][0] if len(going) == BATCH else None)


def mark_all_offline() -> None:
    """At the start of a single process: no account is connected yet, whatever the rows say."""
    Bot.objects.filter(online=True).update(**offline_values())


def load_accounts() -> dict[str, AccountSettings]:
    """What the operator decided of each account."""
    return {
        bot.self_id: AccountSettings(
            bot.owner_ids,
            MediaPolicy(
                cast("MediaAudience", bot.hear_voice),
                cast("MediaAudience", bot.read_files),
                bot.timing_gate,
            ),
            bot.sends_per_minute,
            bot.media_by_url,
            all_for_me=bot.all_for_me,
            is_voiceless=bot.cannot_speak_since is not None,
        )
        for bot in Bot.objects.all()
    }


def load_account_tokens() -> dict[str, str]:
    """The hashes of the accounts that have a token of their own."""
    return dict(Bot.objects.exclude(token_hash="").values_list("self_id", "token_hash"))


def load_account_names() -> dict[str, frozenset[str]]:
    """The accounts that each name stands for which clients dial in by: ids, and second names."""
    names: dict[str, frozenset[str]] = {}
    for self_id, second_name in Bot.objects.values_list("self_id", "second_name"):
        for one in {self_id, second_name} - {""}:
            names[one] = names.get(one, frozenset()) | {self_id}
    return names


def load_account_channels() -> dict[str, str]:
    """The channel of the process that holds each connected account, "" for one that takes no
    actions.

    Accounts of a process that has died are connected no more; its lease is counted by the
    clock of the database. Their rows keep its channel: should it be alive after all, it knows by
    that which accounts are still its own.
    """
    alive = Now() - timedelta(seconds=recovery.LEASE_SECONDS)
    living = list(ServerProcess.objects.filter(last_seen_at__gt=alive).values_list("pk", flat=True))
    lapsed = offline_values()
    del lapsed["channel"]
    Bot.objects.filter(online=True).exclude(process__in=["", *living]).update(**lapsed)
    rows = Bot.objects.filter(online=True).values_list("self_id", "process", "channel")
    return {self_id: channel if process else "" for self_id, process, channel in rows}
