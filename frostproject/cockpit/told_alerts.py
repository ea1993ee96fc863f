"""What the overview tells of, for those who do not look at it: in the words that may leave the
installation, each trouble once; but for an outage of the database, which the one who tells sees
himself: nothing is on record then."""

from types import SimpleNamespace

from django.conf import settings
from django.utils import translation

from agent.access.chat_access import ChatAccess
from agent.domain.alerts import AlertKind, AlertLook, FoundAlert
from frostproject.cockpit.alert import BAD, Alert
from frostproject.cockpit.alerts import find_alerts
from frostproject.cockpit.viewer import Viewer

KINDS = {*AlertKind.values} - {AlertKind.OUTAGE}


def find_told() -> AlertLook:
    """All that holds now, in the language of the installation; in a thread that may ask the
    database. Several of one kind that are about the same are one, the worst of them."""
    # sees all, and is nobody: acts of a row are offered to people
    nobody = SimpleNamespace(
        pk=None, is_active=True, is_superuser=False, has_perm=lambda _one: True
    )
    viewer = Viewer(nobody, ChatAccess(is_everything=True))
    with translation.override(settings.LANGUAGE_CODE):
        alerts = sorted(find_alerts(viewer), key=lambda one: one.level == BAD)
        found = {one.key: one for one in map(_told, alerts) if one.kind in KINDS}
    online = [bot for bot in viewer.bots if bot.online and bot.account_online is not False]
    speaking = [bot for bot in online if bot.cannot_speak_since is None]
    owners = {bot.self_id: bot.owner_ids for bot in viewer.bots}
    return AlertLook(tuple(found.values()), owners, tuple(bot.self_id for bot in speaking))


def _told(alert: Alert) -> FoundAlert:
    return FoundAlert(
        alert.kind,
        str(alert.about),
        alert.plain or alert.text,
        alert.advice,
        alert.level == BAD,
        alert.account,
    )
