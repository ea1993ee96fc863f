"""Programs of tests may be run, and nobody waits as long as in life."""

import sys

import pytest
from pytest_django.fixtures import Settings

from tools.mcp import link, provider, rate_limits


@pytest.fixture(autouse=True)
def _python_may_be_run(settings: Settings) -> None:
    settings.MCP_ALLOWED_COMMANDS = [sys.executable]
    settings.LANGUAGE_CODE = "en"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(rate_limits, "LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(link, "REREAD_SECONDS", 0.05)
    monkeypatch.setattr(provider, "SETTLE_SECONDS", 0.01)
