"""A browser for pages of the cockpit."""

import pytest
from django.test import Client

from tests.admin.record import logged_in


@pytest.fixture
def browser(db: None) -> Client:
    """That of a superuser."""
    return logged_in()
