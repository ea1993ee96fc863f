"""What the operator is told is compared in English."""

import pytest
from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def _in_english(settings: Settings) -> None:
    settings.LANGUAGE_CODE = "en"
