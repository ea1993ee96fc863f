"""Taking back, on the page of a run, what it said and did."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext

from agent.access import find_access
from agent.domain.states import AWAY, ActKind
from agent.domain.undo import UndoAsker, UndoReach
from agent.models import Message, Run
from agent.record.chats.chat_record import find_address
from agent.record.settings.manners import ONEBOT
from agent.record.waiting.operator_acts import author_name, record_act
from agent.record.waiting.undoing import UndoRefused, UndoWish, load_undo_steps, plan_undo
from agent.runtime.serving import get_serving, steer
from tools.admin.record_pages import author_of


def describe_undo(request: HttpRequest, run: Run, asked: Message | None) -> dict[str, Any]:
    """For the page: what was undone, and whether the reader may undo it. What still is in the
    history was not."""
    is_answer = run.parent_id is None and run.trial_of_id is None
    if asked is None or not is_answer or run.session is None or run.session.platform != ONEBOT:
        return {}
    steps = [] if asked.in_history else load_undo_steps(run=run.pk)
    is_left = run.state != Run.State.RUNNING and not steps
    may_undo = is_left and request.user.has_perm("agent.speak_in_chat")
    return {"undone": steps, "may_undo": may_undo}


def undo_run(request: HttpRequest, run: Run) -> None:
    """Put down what is to be taken back and who wants it, have the server do it, or say why not."""
    serving, user = get_serving(), author_of(request)
    reach = UndoReach.EVERYTHING if find_access(user).is_everything else UndoReach.CHAT
    asker = UndoAsker(author_name(user), reach=reach)
    try:
        if serving is None or serving.steering is None:
            text = gettext("This process sends no messages. Open the page of the running server.")
            raise UndoRefused(text)
        if run.session is None or not serving.steering.is_connected(find_address(run.session)):
            raise UndoRefused(gettext(AWAY))  # a step is tried once
        undoable = serving.run(lambda registry: registry.undoable())
        with transaction.atomic():
            plan_undo(UndoWish(run.session_id or 0, asker, undoable, run_pk=run.pk))
            record_act(ActKind.UNDO, run.session_id, user, message=run.message, run=run)
    except UndoRefused as refusal:
        messages.error(request, str(refusal))
    else:
        steer(lambda steering: steering.undo())
