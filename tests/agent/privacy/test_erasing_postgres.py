"""What erasing asks of its database, asked of PostgreSQL too."""

from collections.abc import Iterator

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

from tests.agent.databases import inside, postgres
from tests.agent.privacy.test_erasing import (
    test_nothing_of_the_person_is_left_and_all_of_the_other_is,
    test_the_receipt_counts_what_went_and_names_nobody,
)
from tests.security.test_privacy_erasing import (
    test_events_that_hold_the_number_as_a_part_of_another_stay,
    test_nothing_is_left_of_a_private_chat,
    test_steps_that_hold_the_number_as_a_part_of_another_stay,
    test_what_tools_and_models_reported_goes_with_what_they_were_given,
)

pytestmark = pytest.mark.django_db

__all__ = [
    "postgres",
    "test_events_that_hold_the_number_as_a_part_of_another_stay",
    "test_nothing_is_left_of_a_private_chat",
    "test_nothing_of_the_person_is_left_and_all_of_the_other_is",
    "test_steps_that_hold_the_number_as_a_part_of_another_stay",
    "test_the_receipt_counts_what_went_and_names_nobody",
    "test_what_tools_and_models_reported_goes_with_what_they_were_given",
]


@pytest.fixture(autouse=True)
def _on_postgres(db: None, postgres: DatabaseWrapper) -> Iterator[None]:
    with inside(postgres):
        yield
