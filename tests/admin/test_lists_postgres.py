"""Lists, spending and tools as operators look at them, asked of PostgreSQL too: the tests are those
of the other modules."""

from collections.abc import Iterator

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

from tests.admin.test_lists import (
    test_messages_are_filtered_by_time,
    test_the_first_row_since_a_time_is_found_among_gaps,
)
from tests.admin.test_run_list import (
    runs,
    test_columns_are_chosen_by_each_reader_and_outlast_a_sign_in,
    test_conditions_are_kept_under_a_name_replaced_and_forgotten,
    test_period_is_from_one_day_to_another,
    test_two_runs_stand_side_by_side_with_their_differences_marked,
)
from tests.admin.test_tool_sources import (
    files,
    test_calls_and_failures_of_today_stand_beside_each_tool,
    test_tools_of_a_server_are_switched_off_and_on_at_once,
)
from tests.agent.databases import inside, postgres
from tests.frostproject.cockpit.test_spending import (
    test_a_limit_is_changed_and_switched_beside_its_bar_with_the_same_history,
    test_more_than_are_shown_are_reached_page_by_page,
    test_they_are_ranked_in_one_currency_or_by_tokens,
    test_who_spent_most_in_the_period_stands_first,
)

pytestmark = pytest.mark.django_db

__all__ = [
    "files",
    "postgres",
    "runs",
    "test_a_limit_is_changed_and_switched_beside_its_bar_with_the_same_history",
    "test_calls_and_failures_of_today_stand_beside_each_tool",
    "test_columns_are_chosen_by_each_reader_and_outlast_a_sign_in",
    "test_conditions_are_kept_under_a_name_replaced_and_forgotten",
    "test_messages_are_filtered_by_time",
    "test_more_than_are_shown_are_reached_page_by_page",
    "test_period_is_from_one_day_to_another",
    "test_the_first_row_since_a_time_is_found_among_gaps",
    "test_they_are_ranked_in_one_currency_or_by_tokens",
    "test_tools_of_a_server_are_switched_off_and_on_at_once",
    "test_two_runs_stand_side_by_side_with_their_differences_marked",
    "test_who_spent_most_in_the_period_stands_first",
]


@pytest.fixture(autouse=True)
def _on_postgres(db: None, postgres: DatabaseWrapper) -> Iterator[None]:
    with inside(postgres):
        yield
