"""What routes are told of alerts: decided and claimed in one transaction, before anything is sent.

So each message goes out at most once, whichever process sends it: one that was claimed, and whose
process was killed, may have arrived and is not sent again. Of an outage of the database nothing can
be claimed: a process that has seen it itself tells of it, as often as it would with a claim.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext

from agent.domain.alerts import (
    SURELY_NOT_TOLD,
    AlertKind,
    AlertLook,
    AlertMessage,
    AlertState,
    FoundAlert,
    RouteOutcome,
    choose_senders,
)
from agent.domain.manners import parse_quiet_hours
from agent.domain.states import RouteKind
from agent.domain.types import ChatAddress
from agent.models import AlertNotice, AlertRoute, ServerProcess
from agent.record.ground.outage import DatabaseOutage
from agent.record.sums.owner_notes import tell_owners
from tools.time_limits import TIME_LIMITS

#: How long an alert, and its end, has to hold before it is told.
HOLD = timedelta(seconds=TIME_LIMITS.alert_hold)
#: Messages of one alert in an hour, its ends among them. One that begins leaves room for its end.
MOST, HOUR = 4, timedelta(hours=1)
#: After one that surely did not arrive it is tried again.
AGAIN = timedelta(minutes=5)
#: Alerts of one look; there are some of each kind.
MOST_FOUND = 200


@dataclass(frozen=True, slots=True)
class AlertPost:
    """One message to send; of its ``notice``."""

    route: AlertRoute
    notice: AlertNotice
    message: AlertMessage

    def settle(self, outcome: RouteOutcome) -> None:
        """What surely did not arrive is to be told again."""
        if outcome in SURELY_NOT_TOLD:
            is_begun = self.message.state == AlertState.FIRING
            self.notice.told_at = None if is_begun else self.message.at
            self.notice.not_before = timezone.now() + AGAIN


def find_watcher() -> tuple[list[AlertRoute], str]:
    """The routes that are enabled, and where there are any the process that looks at alerts: the
    oldest that lives."""
    routes = list(AlertRoute.objects.filter(enabled=True).order_by("pk"))
    oldest = ServerProcess.objects.order_by("started_at", "pk").values_list("pk", flat=True)
    return routes, (oldest.first() or "") if routes else ""


def claim_posts(look: AlertLook, since: datetime) -> list[AlertPost]:
    """What is to be sent now, put down as told, by a process that looks ``since`` then. Notes to
    owners are on record with it, and in no need to be sent."""
    found = {one.key: one for one in look.alerts[:MOST_FOUND]}
    # one process at a time: of two that look, the second sees what the first has claimed
    routes = AlertRoute.objects.select_for_update().filter(enabled=True).order_by("pk")
    return [post for route in routes for post in _claim(route, found, look, since)]


def _claim(
    route: AlertRoute, found: Mapping[str, FoundAlert], look: AlertLook, since: datetime
) -> Iterator[AlertPost]:
    now = timezone.now()
    there = {key: one for key, one in found.items() if _is_wanted(route, one.kind)}
    known = {notice.key: notice for notice in route.notices.all()}
    for key in there.keys() - known.keys():
        AlertNotice.objects.create(route=route, key=key, first_seen_at=now)
    for key, notice in known.items():
        alert = there.get(key)
        if _note_presence(notice, now, is_there=alert is not None):
            notice.save()
        if alert is None and notice.told_at is None and not notice.sent:
            notice.delete()
        elif (message := _due(route, notice, alert, now, since)) is None:
            continue
        elif route.kind == RouteKind.OWNERS:
            _tell_owners(route, notice, message, look)
        else:
            _put_down(notice, message)
            notice.save()
            note_outcome(route.pk, RouteOutcome.UNKNOWN)
            yield AlertPost(route, notice, message)


def _is_wanted(route: AlertRoute, kind: str) -> bool:
    return not route.alerts or kind in route.alerts


def _note_presence(notice: AlertNotice, now: datetime, *, is_there: bool) -> bool:
    """Put down what has come or gone; whether anything has."""
    notice.sent = [at for at in notice.sent if at > (now - HOUR).timestamp()]
    if is_there == (notice.gone_at is None):
        return False
    notice.gone_at = None if is_there else now
    if is_there and notice.told_at is None:
        notice.first_seen_at = now
    return True


def _due(
    route: AlertRoute,
    notice: AlertNotice,
    alert: FoundAlert | None,
    now: datetime,
    since: datetime,
) -> AlertMessage | None:
    """What is to be told of it now. How long something held before this process looked is not
    known."""
    moment = timezone.localtime(now).time()
    if any(span.covers(moment) for span in parse_quiet_hours(route.quiet_hours)):
        return None
    if notice.not_before is not None and now < notice.not_before:
        return None
    if alert is not None:
        has_held = now - max(notice.first_seen_at, since) >= HOLD
        is_due = notice.told_at is None and has_held and len(notice.sent) <= MOST - 2
        return AlertMessage(AlertState.FIRING, alert, now) if is_due else None
    if notice.told_at is None or notice.gone_at is None or len(notice.sent) >= MOST:
        return None
    has_ended = now - max(notice.gone_at, since) >= HOLD
    known = FoundAlert(**notice.found)
    return AlertMessage(AlertState.RESOLVED, known, now) if has_ended else None


def _put_down(notice: AlertNotice, message: AlertMessage) -> None:
    is_begun = message.state == AlertState.FIRING
    notice.told_at = message.at if is_begun else None
    notice.sent = [*notice.sent, message.at.timestamp()]
    one = message.alert
    notice.found = {name: getattr(one, name) for name in FoundAlert.__slots__}
    notice.not_before = None


def _tell_owners(
    route: AlertRoute, notice: AlertNotice, message: AlertMessage, look: AlertLook
) -> None:
    """Each in private, through an account that can speak; on record together with the claim."""
    outcome = RouteOutcome.TOLD if note_owners(message, look) else RouteOutcome.NOBODY
    if outcome == RouteOutcome.TOLD:
        _put_down(notice, message)
    else:
        notice.not_before = message.at + HOLD
    notice.save()
    note_outcome(route.pk, outcome)


def note_owners(message: AlertMessage, look: AlertLook) -> bool:
    """Have the owners told; whether there is anybody to tell."""
    senders = choose_senders(message.alert.account, look.owners, look.speaking)
    with translation.override(settings.LANGUAGE_CODE):
        text = f"{message.state.label}: {message.body}"
    for account, whom in senders.items():
        tell_owners(ChatAddress(account, "private", ""), whom, text, message.at)
    return bool(senders)


def note_post(post: AlertPost, outcome: RouteOutcome) -> None:
    """Put down what became of it, once it is settled."""
    note_outcome(post.route.pk, outcome)
    if outcome in SURELY_NOT_TOLD:
        AlertNotice.objects.filter(pk=post.notice.pk).update(
            told_at=post.notice.told_at, not_before=post.notice.not_before
        )


def note_outcome(route: int, outcome: RouteOutcome) -> None:
    """Of the newest message. It is no change of what operators set."""
    QuerySet(AlertRoute).filter(pk=route).update(outcome=outcome, outcome_at=timezone.now())


@dataclass(slots=True)
class OutageNotices:
    """What routes were told of an outage of the database by this process: kept in memory alone.
    Owners cannot be told: what is sent to them is on record first. ``routes`` are those last heard
    of."""

    routes: Sequence[AlertRoute] = ()
    _notices: dict[int, AlertNotice] = field(default_factory=dict)

    def find_posts(self, outage: DatabaseOutage | None) -> Iterator[AlertPost]:
        """What is to be sent now, put down as told."""
        now = timezone.now()
        alert = _outage_alert(outage) if outage else None
        for route in self.routes:
            if route.kind == RouteKind.OWNERS or not _is_wanted(route, AlertKind.OUTAGE):
                continue
            notice = self._notices.get(route.pk)
            if notice is None and outage is not None:
                notice = self._notices[route.pk] = AlertNotice(first_seen_at=outage.since)
            if notice is None:
                continue
            _note_presence(notice, now, is_there=alert is not None)
            if message := _due(route, notice, alert, now, notice.first_seen_at):
                _put_down(notice, message)
                yield AlertPost(route, notice, message)


def _outage_alert(outage: DatabaseOutage) -> FoundAlert:
    with translation.override(settings.LANGUAGE_CODE):
        since = f"{timezone.localtime(outage.since):%H:%M:%S}"
        words = {"since": since, "reason": gettext(outage.reason)}
        text = gettext("The database cannot be written since %(since)s: %(reason)s") % words
        advice = gettext("Messages wait until it can be written again. See to disk and database.")
    return FoundAlert(AlertKind.OUTAGE, "", text, advice, is_bad=True)
