"""The audit of the locked packages, as ``.ci/run`` does it."""

import json
import runpy
import sys
from datetime import date
from pathlib import Path

import pytest

from tests.environment import PROJECT

audit = runpy.run_path(str(PROJECT / ".ci" / "audit.py"))
NotAudited = audit["NotAuditedError"]
MENDED = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "fix_versions": ["2.0", "3.0"]}
OPEN = {"id": "PYSEC-2026-2", "aliases": [], "fix_versions": []}
REPORT = [
    {"name": "clean", "version": "1.0", "vulns": []},
    {"name": "bad", "version": "1.0", "vulns": [MENDED, OPEN]},
]


def saying(words: str, code: int = 0) -> list[str]:
    return [sys.executable, "-c", f"import sys; print({words!r}); sys.exit({code})"]


def test_a_vulnerability_that_an_update_mends_is_told_and_others_are_not():
    assert list(audit["vulnerable"](REPORT, frozenset())) == [
        "bad 1.0: PYSEC-2026-1, mended in 2.0, 3.0"
    ]


@pytest.mark.parametrize("name", ["PYSEC-2026-1", "CVE-2026-1"])
def test_an_accepted_one_is_left_out_until_its_day(name):
    text = f"# why\n\n{name} 2027-01-31 not used here\n"
    accepted = audit["ignored"](text, date(2027, 1, 31))
    assert list(audit["vulnerable"](REPORT, accepted)) == []
    assert audit["ignored"](text, date(2027, 2, 1)) == frozenset()


@pytest.mark.parametrize(
    "line", ["PYSEC-2026-1", "PYSEC-2026-1 soon because", "PYSEC-2026-1 2027-01-31"]
)
def test_an_entry_without_day_or_reason_is_no_entry(line):
    with pytest.raises(ValueError):
        audit["ignored"](line, date(2027, 1, 31))


def test_what_is_accepted_today_can_be_read():
    audit["ignored"](
        (PROJECT / ".ci" / "audit-ignore.txt").read_text(encoding="utf-8"), date(2026, 1, 1)
    )


def test_a_report_is_read_whether_or_not_something_was_found():
    for code in (0, 1):
        assert audit["asked"](saying(json.dumps({"dependencies": REPORT}), code)) == REPORT


@pytest.mark.parametrize(
    "command",
    [
        saying("", 1),
        saying("Traceback", 2),
        saying(json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found"}]})),
        saying(json.dumps({"dependencies": []})),
    ],
    ids=["nothing", "crash", "none known", "no packages"],
)
def test_advisories_that_cannot_be_had_are_no_problem(command):
    with pytest.raises(NotAudited):
        audit["asked"](command)


def test_advisories_that_never_come_are_not_waited_for():
    with pytest.raises(NotAudited, match="no answer within"):
        audit["asked"]([sys.executable, "-c", "import time; time.sleep(600)"], 0.2)


@pytest.mark.slow
def test_without_a_registry_one_line_says_so_and_nothing_fails(monkeypatch, capsys, tmp_path: Path):
    for name, value in {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    assert audit["main"](tmp_path) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("audit: skipped, ")
