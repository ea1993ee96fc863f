"""``doctor``: checks an installation, running or stopped, and says how to fix what is wrong."""

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _

from frostproject.doctor import diagnosis
from frostproject.doctor.checks import CHECKS, own_url
from tools.findings import Finding, FindingLevel


class Command(BaseCommand):
    help = (
        "Checks the installation and a running server, and says how to fix what is wrong. Exit "
        "status 1 if anything is wrong."
    )
    requires_system_checks = ()  # they are among the findings

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--url",
            help=(
                "Address of the running server; default: this machine, at the port of "
                "WS_LISTEN_ADDR."
            ),
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        given = base_url(options["url"]) if options["url"] else ""
        found = Counter(finding.level for finding in self._shown(given or own_url()))
        self.stdout.write("\n" + _("What to enter in the OneBot client:"))
        for line in diagnosis.client_setting_lines(given):
            self.stdout.write(f"  {line}")
        if found[FindingLevel.FAIL]:
            self.stdout.write(
                "\n" + _("Something is wrong: see the lines that begin with FAIL."),
                self.style.ERROR,
            )
            sys.exit(1)
        if found[FindingLevel.WARN]:
            warned = _("It works, but see the lines that begin with WARN.")
            self.stdout.write("\n" + warned, self.style.WARNING)
            return
        self.stdout.write("\n" + _("Nothing is wrong."), self.style.SUCCESS)

    def _shown(self, url: str) -> Iterator[Finding]:
        styles = {
            FindingLevel.OK: self.style.SUCCESS,
            FindingLevel.WARN: self.style.WARNING,
            FindingLevel.FAIL: self.style.ERROR,
        }
        for finding in (found for check in CHECKS for found in check.find(url)):
            style = styles.get(finding.level, str)
            self.stdout.write(f"{style(f'{finding.level:4}')} {finding.line}")
            if finding.advice:
                self.stdout.write(f"     -> {finding.advice}")
            self.stdout.flush()
            yield finding


def base_url(text: str) -> str:
    """``text`` without a path; raises CommandError for what is no http(s) address."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(_("--url wants an address like http://127.0.0.1:1234"))
    return f"{parts.scheme}://{parts.netloc}"
