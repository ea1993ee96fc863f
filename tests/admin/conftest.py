"""Every test here has a database and a superuser's browser that asks for English."""

import pytest
from django.test import Client

from tests.admin.record import logged_in


@pytest.fixture
def browser(db: None) -> Client:
    return logged_in()
