"""What the memory asks of its database, asked of PostgreSQL too: the tests are those of the other
modules."""

from collections.abc import Iterator

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

from tests.agent.databases import inside, postgres
from tests.agent.memory.test_memory_recall import (
    test_a_wish_of_the_speaker_comes_to_mind_whatever_is_said,
    test_recalling_takes_no_more_queries_for_many_notes_than_for_few,
    test_the_newest_summary_of_the_chat_is_recalled_and_fenced,
    test_what_was_said_in_one_group_does_not_come_to_mind_in_another,
    test_without_notes_one_look_is_enough,
)
from tests.agent.memory.test_memory_review import (
    test_accepted_notes_become_one_for_the_same_audience,
    test_notes_of_two_audiences_never_become_one,
    test_notes_that_changed_since_are_left_as_they_are,
    test_only_many_notes_of_one_owner_for_one_audience_are_looked_through,
    test_what_was_long_of_no_use_may_go_unless_the_operator_wrote_it_or_said_no,
)
from tests.agent.memory.test_memory_upkeep import (
    session,
    test_a_window_that_is_full_of_words_lets_fall_out_too,
    test_notes_are_due_after_some_turns_and_a_backlog_is_left_out,
    test_what_fell_out_is_due_once_there_is_enough,
)
from tests.agent.memory.test_memory_vectors import (
    test_a_note_that_says_something_else_loses_its_meaning,
    test_vectors_of_another_model_are_dropped,
)

pytestmark = pytest.mark.django_db

__all__ = [
    "postgres",
    "session",
    "test_a_note_that_says_something_else_loses_its_meaning",
    "test_a_window_that_is_full_of_words_lets_fall_out_too",
    "test_a_wish_of_the_speaker_comes_to_mind_whatever_is_said",
    "test_accepted_notes_become_one_for_the_same_audience",
    "test_notes_are_due_after_some_turns_and_a_backlog_is_left_out",
    "test_notes_of_two_audiences_never_become_one",
    "test_notes_that_changed_since_are_left_as_they_are",
    "test_only_many_notes_of_one_owner_for_one_audience_are_looked_through",
    "test_recalling_takes_no_more_queries_for_many_notes_than_for_few",
    "test_the_newest_summary_of_the_chat_is_recalled_and_fenced",
    "test_vectors_of_another_model_are_dropped",
    "test_what_fell_out_is_due_once_there_is_enough",
    "test_what_was_long_of_no_use_may_go_unless_the_operator_wrote_it_or_said_no",
    "test_what_was_said_in_one_group_does_not_come_to_mind_in_another",
    "test_without_notes_one_look_is_enough",
]


@pytest.fixture(autouse=True)
def _on_postgres(db: None, postgres: DatabaseWrapper) -> Iterator[None]:
    with inside(postgres):
        yield
