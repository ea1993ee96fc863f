"""Fails when a locked package has a known vulnerability that a newer version mends: ``python
.ci/audit.py FOLDER``.

``pip-audit`` is installed into FOLDER, away from what is tested. Where it or the advisories cannot
be had (no network, a
mirror of packages alone), one line says so and nothing fails. ``.ci/audit-ignore.txt`` lists what
is known and accepted.
"""

import json
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
TOOL = "pip-audit==2.10.1"
LOCK = PROJECT / "requirements-dev.lock"
IGNORED = PROJECT / ".ci" / "audit-ignore.txt"
#: Seconds for installing and for asking, each.
LIMIT = 180


class NotAuditedError(Exception):
    """The advisories could not be had."""


def main(folder: Path) -> int:
    """0 when there is nothing to mend, or nothing could be learnt; 1 with a line for each package
    to mend."""
    try:
        report = asked([*installed(folder), "--requirement", str(LOCK)])
    except NotAuditedError as why:
        print(f"audit: skipped, {why}")
        return 0
    accepted = ignored(IGNORED.read_text(encoding="utf-8"), datetime.now(UTC).date())
    problems = list(vulnerable(report, accepted))
    print(
        *(f"audit: {line}" for line in problems or ["no known vulnerability that an update mends"]),
        sep="\n",
    )
    return int(bool(problems))


def installed(folder: Path) -> list[str]:
    """The command of ``pip-audit`` in an environment of its own. Raises
    :class:`NotAuditedError`."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TOOL], LIMIT)
    options = (
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner=off",
        "--timeout=10",
        "--format=json",
    )
    return [python, "-m", "pip_audit", *options, f"--cache-dir={folder / 'cache'}"]


def asked(command: Sequence[str], seconds: float = LIMIT) -> list[dict[str, Any]]:
    """What ``command`` says of each package. Raises :class:`NotAuditedError`, also when it knows
    none of them."""
    said = _run(command, seconds, accepted=(0, 1))
    try:
        packages: list[dict[str, Any]] = json.loads(said)["dependencies"]
    except (ValueError, KeyError, TypeError):
        raise NotAuditedError("the advisories cannot be reached") from None
    if all("skip_reason" in package for package in packages):
        raise NotAuditedError("this package registry has no advisories")
    return packages


def vulnerable(report: Sequence[dict[str, Any]], accepted: frozenset[str]) -> Iterator[str]:
    """A line for each vulnerability that is not ``accepted`` and gone in another version."""
    for package in report:
        for found in package.get("vulns", ()):
            if found["fix_versions"] and not {found["id"], *found.get("aliases", ())} & accepted:
                yield f"{package['name']} {package['version']}: {found['id']}, mended in {', '.join(found['fix_versions'])}"


def ignored(text: str, today: date) -> frozenset[str]:
    """The vulnerabilities that ``text`` accepts: lines of id, last day (2027-01-31) and reason.
    Later they count again."""
    lines = (
        line.split(maxsplit=2)
        for line in text.splitlines()
        if line.strip() and not line.startswith("#")
    )
    return frozenset(name for name, until, _reason in lines if today <= date.fromisoformat(until))


def _run(command: Sequence[str], seconds: float, accepted: Sequence[int] = (0,)) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise NotAuditedError(f"no answer within {seconds:g} s") from None
    if done.returncode not in accepted:
        raise NotAuditedError(
            (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
