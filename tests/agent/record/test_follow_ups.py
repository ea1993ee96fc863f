"""Which messages of a group follow one of the same person that is to be answered."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agent.models import Manners
from tests.agent.talk import GROUP, arrival, arrivals, message, reasons
from tools.models import ConfigVersion

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()


def merging(seconds: float) -> None:
    Manners.objects.create(name="merge", merge_seconds=seconds)
    ConfigVersion.objects.update_or_create(pk=1, defaults={"number": 7})


def heard(*said: tuple[str, str, float], together: bool = True) -> list[str]:
    """The reasons of messages of a group: text, sender, seconds; ``@`` in front mentions the
    bot."""
    store = arrivals()
    came = [
        arrival(
            message(text.lstrip("@"), GROUP, sender_id=sender, mentions_bot=text.startswith("@")),
            received_at=NOW + timedelta(seconds=seconds),
        )
        for text, sender, seconds in said
    ]
    batches = [came] if together else [[one] for one in came]
    return [reason for batch in batches for reason in reasons(store.accept_messages(batch))]


@pytest.mark.parametrize("together", [True, False])
def test_what_a_person_says_within_the_window_is_answered_without_a_mention(together):
    merging(5)
    said = [("@hi", "1", 0), ("are you there", "1", 4), ("hm", "1", 8), ("later", "1", 14)]
    wanted = ["mention", "follow_up", "follow_up", "not_addressed"]
    assert heard(*said, together=together) == wanted


def test_nothing_follows_where_no_row_says_so():
    assert heard(("@hi", "1", 0), ("there", "1", 0.1)) == ["mention", "not_addressed"]


def test_another_persons_addressed_message_ends_it_and_other_talk_does_not():
    merging(5)
    talk = [("@hi", "1", 0), ("what", "2", 1), ("more", "1", 2), ("@me too", "2", 3), ("!", "1", 4)]
    wanted = ["mention", "not_addressed", "follow_up", "mention", "not_addressed"]
    assert heard(*talk) == wanted


def test_the_next_words_after_a_bare_mention_are_for_the_bot():
    assert heard(("@", "1", 0), ("what time is it", "1", 3), ("and", "1", 4)) == [
        "mention",
        "follow_up",
        "not_addressed",
    ]


def test_what_was_not_committed_opens_nothing():
    merging(5)
    store = arrivals()
    opened = message("hi", GROUP, sender_id="1", mentions_bot=True)
    store.accept_messages([arrival(opened, received_at=NOW)])
    store.forget()
    later = arrival(message("more", GROUP, sender_id="1"), received_at=NOW)
    assert reasons(store.accept_messages([later])) == ["not_addressed"]
