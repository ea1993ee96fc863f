"""Messages asked again, on record: with whom, from what, and what never finds them."""

import pytest
from django.contrib.auth.models import User

from agent.domain.endpoint import ModelRole
from agent.memory.notes_store import NoteSearch, find_notes, peek_notes, peek_profiles
from agent.models import Note, OperatorAct, Persona, Run
from agent.record.runs.runs import RunStarter, StartRun
from agent.record.runs.steps import NewStep, record_steps
from agent.record.waiting.recovery import record_heartbeat
from agent.record.waiting.trials import (
    BUSY,
    NO_PERSONA,
    NO_REQUEST,
    BegunTrial,
    TrialRefusal,
    TrialStarter,
    TrialWish,
)
from tests.agent.notes import ANN_AT_HOME, noted
from tests.agent.talk import PLAN, PROCESS, accept, begin, message

pytestmark = pytest.mark.django_db
REQUEST = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]


def wish(author: User, *, has_request: bool = True, **fields: int) -> TrialWish:
    """Of an answered message."""
    (accepted,) = accept(message("hi"))
    (run,) = begin([StartRun(PLAN, accepted.pk, accepted.session_pk)])
    if has_request:
        record_steps([NewStep(run.run_pk, 1, REQUEST, [], {"content": "hello"})])
    return TrialWish(accepted.pk, run.run_pk, author.pk, author.username, **fields)


def ask(wanted: TrialWish) -> BegunTrial | TrialRefusal:
    starter = RunStarter(PROCESS)
    return TrialStarter(PROCESS, starter, lambda persona: "m1").begin_trial(wanted)


def test_a_trial_has_the_words_of_then_and_another_persona_and_endpoint(admin_user: User):
    sage = Persona.objects.create(name="sage", prompt="You are the sage.")
    begun = ask(wish(admin_user, persona_pk=sage.pk, endpoint_pk=7))
    assert isinstance(begun, BegunTrial)
    assert begun.opening == REQUEST[1:]
    assert begun.persona.prompt == "You are the sage."
    assert begun.persona.endpoints[ModelRole.CHAT] == (7,)
    trial = Run.objects.get(pk=begun.claim.run_pk)
    assert (trial.session, trial.message, trial.persona, trial.author) == (
        *(None, None, "sage", "admin"),
    )
    act = OperatorAct.objects.get()
    assert (act.kind, act.author, act.run) == ("ask_again", admin_user, trial)


def test_what_cannot_be_asked_again_leaves_nothing_on_record(admin_user: User):
    off = Persona.objects.create(name="off", enabled=False)
    wanted = wish(admin_user, persona_pk=off.pk)
    assert ask(wanted) == TrialRefusal(NO_PERSONA)
    assert ask(wish(admin_user, has_request=False)) == TrialRefusal(NO_REQUEST)
    assert ask(TrialWish(10**9, wanted.run_pk, admin_user.pk, "admin")) == TrialRefusal(NO_REQUEST)
    assert not Run.objects.filter(origin="test").exists()
    assert not OperatorAct.objects.exists()


def test_an_operator_has_one_trial_at_a_time(admin_user: User):
    wanted = wish(admin_user)
    assert isinstance(ask(wanted), BegunTrial)
    assert ask(wanted) == TrialRefusal(BUSY)
    Run.objects.filter(origin="test").update(state="finished")
    assert isinstance(ask(wanted), BegunTrial)


def test_a_trial_of_a_dead_process_is_over_and_not_taken_up(admin_user: User):
    begun = ask(wish(admin_user))
    assert isinstance(begun, BegunTrial)
    record_heartbeat("p2", alone=True, is_first=True)
    trial = Run.objects.get(pk=begun.claim.run_pk)
    assert (trial.state, bool(trial.finished_at), bool(trial.error)) == ("interrupted", True, True)
    assert trial.claim_number != begun.claim.number


def test_notes_that_are_peeked_at_do_not_count_as_used(db: None):
    noted(ANN_AT_HOME, "likes tea")
    search = NoteSearch(ANN_AT_HOME, "tea")
    assert [note.text for note in peek_notes([search])[0]] == ["likes tea"]
    assert peek_profiles(ANN_AT_HOME, "20001", 5).notes
    assert Note.objects.get().use_count == 0
    find_notes([search])
    assert Note.objects.get().use_count == 1
