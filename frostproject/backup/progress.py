"""A line about how far something is, in a terminal."""

import sys
import time

BAR = 30
#: Seconds between two lines.
EVERY = 0.1


class ProgressBar:
    """Told to standard error, in place, where that is a terminal; else nothing is said."""

    def __init__(self) -> None:
        self._is_shown, self._told_at = sys.stderr.isatty(), 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._is_shown or (done < total and now < self._told_at + EVERY):
            return
        self._told_at = now
        share = done / total if total else 1.0
        bar = "#" * int(share * BAR)
        sys.stderr.write(f"\r\033[K{label} [{bar:{BAR}}] {share:4.0%} {done:,} / {total:,}")
        sys.stderr.write("\n" if done >= total else "")
        sys.stderr.flush()
