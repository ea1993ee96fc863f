"""What a model is shown of a chat's past, asked of PostgreSQL too: the tests are those of the other
modules."""

from collections.abc import Iterator

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

from tests.agent.chat.test_heard_context import (
    test_nothing_from_before_a_reset_is_shown,
    test_only_the_newest_are_shown_and_none_that_is_too_old,
    test_what_is_no_word_of_the_group_is_left_out,
)
from tests.agent.databases import inside, postgres
from tests.agent.memory.test_memory_upkeep import (
    session,
    test_a_reading_of_words_that_are_recalled_meanwhile_is_not_kept,
    test_a_summary_is_made_anew_without_what_was_recalled,
    test_after_a_reset_summaries_begin_afresh,
)
from tests.agent.record.test_chat_history import (
    test_a_recalled_message_is_not_shown_again,
    test_after_a_reset_nothing_from_before_is_shown,
    test_what_the_owner_writes_by_hand_stands_where_it_was_said,
    test_words_written_by_hand_before_the_first_run_are_what_it_begins_with,
)
from tests.agent.record.test_recalls import (
    test_a_recall_touches_only_the_chat_that_its_notice_names,
    test_the_words_of_a_recalled_message_leave_those_that_quote_it,
)

pytestmark = pytest.mark.django_db

__all__ = [
    "postgres",
    "session",
    "test_a_reading_of_words_that_are_recalled_meanwhile_is_not_kept",
    "test_a_recall_touches_only_the_chat_that_its_notice_names",
    "test_a_recalled_message_is_not_shown_again",
    "test_a_summary_is_made_anew_without_what_was_recalled",
    "test_after_a_reset_nothing_from_before_is_shown",
    "test_after_a_reset_summaries_begin_afresh",
    "test_nothing_from_before_a_reset_is_shown",
    "test_only_the_newest_are_shown_and_none_that_is_too_old",
    "test_the_words_of_a_recalled_message_leave_those_that_quote_it",
    "test_what_is_no_word_of_the_group_is_left_out",
    "test_what_the_owner_writes_by_hand_stands_where_it_was_said",
    "test_words_written_by_hand_before_the_first_run_are_what_it_begins_with",
]


@pytest.fixture(autouse=True)
def _on_postgres(db: None, postgres: DatabaseWrapper) -> Iterator[None]:
    with inside(postgres):
        yield
