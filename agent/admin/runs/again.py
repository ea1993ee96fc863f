"""Asking a message again with another persona or model, without sending; the answers side by
side."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from agent.admin.runs.waterfall import format_span
from agent.domain.persona import PersonaKind
from agent.models import Message, ModelEndpoint, Persona, Run, ToolCall
from agent.models.message import BY_HAND
from agent.pages.page_reader import VIEW_ENDPOINT
from agent.pages.runs import held_back, run_rows, step_facts
from agent.record.waiting.trials import TrialRefusal, TrialWish
from agent.runtime import serving
from tools.admin.record_pages import parse_row_number
from tools.refusals import CallVerdict
from tools.text.readable import arguments_text

#: Trials that stand beside the answer, and rows that can be chosen.
BESIDE, ROW_LIMIT = 3, 200
NEEDED = ("agent.speak_in_chat", "agent.change_chatsession")


def may_ask_again(request: HttpRequest) -> bool:
    """Whether the user may ask messages of the chats in his reach again."""
    return all(request.user.has_perm(name) for name in NEEDED)


def again_page(pages: "admin.ModelAdmin[Run]", request: HttpRequest, pk: int) -> HttpResponse:
    """For ``pages``: the message of the run ``pk``, its answer and its trials; by POST one more."""
    run = get_object_or_404(pages.get_queryset(request), pk=pk)
    messages_asked = Message.objects.select_related("session").defer("segments", "raw")
    asked = get_object_or_404(messages_asked, pk=run.trial_of_id or run.message_id or 0)
    if not (pages.has_view_permission(request) and request.user.has_perm("agent.view_message")):
        raise PermissionDenied
    answer = _find_answer(run, asked)
    if request.method == "POST":
        if not may_ask_again(request):
            raise PermissionDenied
        _ask(request, asked, answer)
        return redirect("admin:agent_run_again", answer.pk)
    compared = [answer, *Run.objects.filter(trial_of=asked).order_by("-pk")[:BESIDE]]
    for one in compared:
        held_back.hold_back_model(one, request.user)
    return TemplateResponse(
        request,
        "admin/agent/run/again.html",
        {
            **pages.admin_site.each_context(request),
            "opts": Run._meta,
            "title": gettext("Ask again without sending"),
            "asked": asked,
            "answer": answer,
            "compared": [_compare(one) for one in compared],
            "personas": _personas(),
            "endpoints": _endpoints(request, asked),
            "may_ask": may_ask_again(request),
            "is_serving": serving.get_serving() is not None,
        },
    )


def _find_answer(run: Run, asked: Message) -> Run:
    """The run that answered: ``run``, unless that asks again or works for another one."""
    if run.trial_of_id is None and run.parent_id is None:
        return run
    if (found := Run.objects.filter(message=asked, parent=None).order_by("-pk").first()) is None:
        raise Http404
    return found


def _personas() -> list[Persona]:
    rows = Persona.objects.filter(enabled=True, kind=PersonaKind.PERSONA)
    return list(rows.only("name", "is_default").order_by("-is_default", "name")[:ROW_LIMIT])


def _endpoints(request: HttpRequest, asked: Message) -> list[ModelEndpoint]:
    """Those that answer chats; for users who may not see endpoints those that have answered this
    one."""
    may_see = request.user.has_perm(VIEW_ENDPOINT)
    rows = (
        ModelEndpoint.objects.all()
        if may_see
        else held_back.find_answering_endpoints(asked.session_id)
    )
    return list(rows.filter(enabled=True, can_chat=True).order_by("position", "pk")[:ROW_LIMIT])


def _chosen(
    request: HttpRequest, name: str, permission: str, offered: Iterable[Model]
) -> int | None:
    """The key of the row that was chosen; None for none. Raises PermissionDenied for one that is
    not ``offered``, unless the user may see all."""
    number = parse_row_number(request.POST.get(name, "")) or None
    if number is None or request.user.has_perm(permission):
        return number
    if number not in {row.pk for row in offered}:
        raise PermissionDenied
    return number


def _ask(request: HttpRequest, asked: Message, answer: Run) -> None:
    """Begin, or tell the user why not."""
    user: Any = request.user
    wish = TrialWish(
        asked.pk,
        answer.pk,
        user.pk,
        user.get_username(),
        _chosen(request, "persona", held_back.VIEW_PERSONA, _personas()),
        _chosen(request, "endpoint", VIEW_ENDPOINT, _endpoints(request, asked)),
    )
    serves = serving.get_serving()
    if serves is None:
        messages.error(
            request,
            gettext("This process serves no client, so it cannot ask a model. Start the server."),
        )
        return
    try:
        begun = serves.ask_again(wish)
    except TimeoutError:
        messages.error(request, gettext("The database takes nothing at the moment: try again."))
        return
    if isinstance(begun, TrialRefusal):
        messages.error(request, gettext(begun.reason))


def _compare(run: Run) -> dict[str, Any]:
    """An answer, or what would have been one: ``said`` are the texts that went out, ``calls`` the
    tool calls, each with what it was given and what was decided."""
    calls = ToolCall.objects.filter(run=run).order_by("step_id", "position")
    columns = ("pk", "tool_name", "arguments", "verdict", "state", "run_id")
    sent = (
        Message.objects.filter(Q(run=run), direction=Message.Direction.OUT)
        .exclude(BY_HAND)
        .order_by("pk")
    )
    return {
        "run": run,
        "is_trial": run.trial_of_id is not None,
        "said": list(sent.defer("segments", "raw")[: run_rows.CALL_LIMIT]),
        "calls": [
            {
                "call": call,
                "given": arguments_text(call.arguments),
                "verdict": step_facts.describe_verdict(call.verdict),
                "stood_in": call.verdict == CallVerdict.STOOD_IN,
            }
            for call in calls.only(*columns)[: run_rows.CALL_LIMIT]
        ],
        "sums": step_facts.load_sums(run),
        "steps": run.steps.count(),
        "took": format_span(run.finished_at - run.started_at) if run.finished_at else "",
    }
