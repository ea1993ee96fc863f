"""What ``doctor`` finds, for a page: the checks run in threads of their own, one lot at a time, and
what they found is kept for a while."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import connections
from django.utils import translation
from django.utils.translation import gettext as _

from frostproject.doctor.checks import Check
from tools.error_boundary import capture_error
from tools.findings import Finding, FindingLevel, warn_finding

#: For which what was found is not looked for again, in seconds.
FRESH_SECONDS = 10.0
MOST_FINDINGS = 300


@dataclass
class CheckedPart:
    """One check: what it found so far, None while it has not begun."""

    check: Check
    findings: list[Finding] | None = None


@dataclass
class CheckLot:
    """Checks that were asked for together, in one language."""

    language: str
    parts: list[CheckedPart]
    begun_at: float
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def is_running(self) -> bool:
        return not self.done.is_set()

    @property
    def worst(self) -> str:
        """The level that asks for attention first; "" where all is well so far."""
        found = {one.level for part in self.parts for one in part.findings or ()}
        return next(
            (str(one) for one in (FindingLevel.FAIL, FindingLevel.WARN) if one in found), ""
        )


class CheckDesk:
    """Of one process; for the threads of its pages. Nothing here waits for a check."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._lots: dict[bool, CheckLot] = {}
        self._busy: set[threading.Thread] = set()

    def start(self, checks: Sequence[Check], url: str, *, asks_others: bool) -> CheckLot:
        """The lot of ``checks``, begun now unless one is under way or fresh. What was asked for in
        another language is looked for again."""
        language = translation.get_language() or ""
        with self._lock:
            lot = self._lots.get(asks_others)
            if lot is not None and (
                lot.is_running
                or (lot.language == language and self._clock() - lot.begun_at < FRESH_SECONDS)
            ):
                return lot
            self._busy = {one for one in self._busy if one.is_alive()}
            if self._busy:  # of an earlier lot, past its time
                return lot or CheckLot(language, [], self._clock())
            lot = CheckLot(language, [CheckedPart(one) for one in checks], self._clock())
            self._lots[asks_others] = lot
            threading.Thread(target=self._run, args=(lot, url), daemon=True).start()
        return lot

    def find(self, *, asks_others: bool) -> CheckLot | None:
        """The last lot; None where there was none."""
        return self._lots.get(asks_others)

    def forget(self) -> None:
        with self._lock:
            self._lots.clear()

    def _run(self, lot: CheckLot, url: str) -> None:
        try:
            for part in lot.parts:
                found: list[Finding] = []
                worker = threading.Thread(
                    target=_find, args=(part.check, url, lot.language, found), daemon=True
                )
                worker.start()
                worker.join(part.check.seconds)
                part.findings = list(found)
                if worker.is_alive():
                    self._busy.add(worker)
                    with translation.override(lot.language or None):
                        words = _("This check was not done within %d s.") % round(
                            part.check.seconds
                        )
                        advice = _("Try it once more, or run: make doctor")
                        part.findings.append(Finding(FindingLevel.WARN, words, advice))
        finally:
            lot.done.set()


def _find(check: Check, url: str, language: str, found: list[Finding]) -> None:
    """Put what ``check`` finds into ``found``, one by one."""
    with capture_error() as attempt:
        try:
            with translation.override(language or None):
                for finding in check.find(url):
                    found.append(finding)
                    if len(found) >= MOST_FINDINGS:
                        break
        finally:
            connections.close_all()
    if attempt.error is not None:
        with translation.override(language or None):
            words = _("The check itself failed: %s") % type(attempt.error).__name__
            found.append(warn_finding(words, _("See the server's log.")))


check_desk = CheckDesk()
