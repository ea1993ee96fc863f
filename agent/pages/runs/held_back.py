"""What pages of runs keep from users who may not see personas or model endpoints: the prompts, and
the names of endpoints that did not answer."""

import json
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext

from agent.models import ModelEndpoint, Run, Step
from agent.pages.page_reader import VIEW_ENDPOINT

VIEW_PERSONA = "agent.view_persona"
SYSTEM_ROLES = ("system", "developer")
#: Newest runs of a chat whose endpoints its owner may choose among.
RUNS_READ = 200


def may_see_prompts(user: Any) -> bool:
    return bool(user.has_perm(VIEW_PERSONA))


def hold_back(step: Step, user: Any) -> None:
    """Have the row of ``step``, which is not saved, show what ``user`` may see of its request."""
    if not may_see_prompts(user):
        step.request = veil_new(step.request)
        if step.sent is not None:
            step.sent = json.dumps(veil_whole(json.loads(step.sent)), ensure_ascii=False)
    hold_back_endpoints(step, user)


def hold_back_model(run: Run, user: Any) -> None:
    """Have the row of ``run``, which is not saved, name the models that answered, instead of the
    one that was to be asked first."""
    if not user.has_perm(VIEW_ENDPOINT):
        answering = Step.objects.filter(run=run, error="").exclude(model=None).order_by("number")
        names = dict.fromkeys(answering.values_list("model", flat=True))
        run.model = ", ".join(filter(None, names))


def hold_back_endpoints(step: Step, user: Any) -> None:
    """Have the row of ``step`` name no endpoints that were asked in vain, nor what they said."""
    if user.has_perm(VIEW_ENDPOINT):
        return
    if step.error:
        step.endpoint_name = step.model = ""
    if step.attempts:
        unnamed = {"endpoint": gettext("another endpoint"), "model": "", "reason": ""}
        step.attempts = [{**attempt, **unnamed} for attempt in step.attempts]


def veil_new(messages: Any) -> Any:
    """The new messages of a step, with something else in place of prompts."""
    if not isinstance(messages, list):
        return messages
    return [_veiled(one) if _is_system(one) else one for one in messages]


def veil_whole(messages: list[Any]) -> list[Any]:
    """The same for all messages as an endpoint was sent them; for one that takes no system message
    its words stand in the first other one."""
    if messages and not any(map(_is_system, messages)):
        return [_veiled(messages[0]), *messages[1:]]
    return list(veil_new(messages))


def find_answering_endpoints(session_pk: int) -> QuerySet[ModelEndpoint]:
    """The endpoints that have answered in a chat lately."""
    runs = Run.objects.filter(session=session_pk).order_by("-pk").values_list("pk", flat=True)
    steps = Step.objects.filter(run__in=list(runs[:RUNS_READ]), error="").order_by()
    answering = steps.exclude(endpoint=None).values_list("endpoint", flat=True).distinct()
    return ModelEndpoint.objects.filter(pk__in=list(answering))


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in SYSTEM_ROLES


def _veiled(message: Any) -> dict[str, Any]:
    told = gettext("The prompt is shown to those who may see personas.")
    role = message.get("role") if isinstance(message, dict) else "system"
    return {"role": role, "content": told}
