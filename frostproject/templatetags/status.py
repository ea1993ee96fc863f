"""The status panel on the admin's first page: what is connected, what waits, what failed."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.http.request import split_domain_port
from django.utils import timezone
from django.utils.translation import gettext

from agent.domain.budgets import SpendKind, cost_words
from agent.domain.states import ApprovalState, MessageState, RunState
from agent.models import UNSETTLED, Approval, ChatSession, Manners, Message, ModelEndpoint, Run
from agent.record.chat_manners import is_for_everything
from agent.record.pauses import is_paused
from agent.record.spendings import SumRange, current_day, load_spent
from agent.runtime import serving
from frostproject.models import FailedSignIns, SignInRecord
from frostproject.signin import plain_http
from onebot.models import Bot
from tools.admin.declaration_review import LOOK_NEEDED
from tools.models import ToolConfig

register = template.Library()

#: Rows of each part; every query stops there.
BOT_LIMIT, FAILURE_LIMIT, WAITING_LIMIT, SIGN_IN_LIMIT = 20, 5, 1_000, 3
#: A heartbeat newer than this is not given an age.
JUST_NOW = timedelta(minutes=1)


@register.inclusion_tag("admin/status_panel.html", takes_context=True)
def status_panel(context: Any) -> dict[str, Any]:
    """What the user may see of the present state: one short query for each part."""
    request, user = context["request"], context["user"]
    scheme = "wss" if request.is_secure() or plain_http.is_for_https_only() else "ws"
    messages = _messages(user)
    return {
        "address": f"{scheme}://{request.get_host()}/ws/frostagent",
        "request": request,
        "perms": context["perms"],
        "just_now": timezone.now() - JUST_NOW,
        **_models(user),
        **_bots(user),
        **messages,
        **_silence(user),
        **_approvals(user),
        **_tools(user),
        **_runs(user, {message.pk for message in messages.get("failed_messages", ())}),
        **_sign_ins(user),
    }


@register.inclusion_tag("admin/outage.html", takes_context=True)
def outage(context: Any) -> dict[str, Any]:
    """Whether the database refuses to be written, for those who are signed in; no query."""
    serving_now = serving.get_serving() if getattr(context.get("user"), "is_staff", False) else None
    found = serving_now.outage() if serving_now else None
    return {"outage": found, "reason": gettext(found.reason) if found else ""}


@register.inclusion_tag("admin/https_only.html", takes_context=True)
def https_only(context: Any) -> dict[str, Any]:
    """Where to sign in, for those who are at another host than those of https; a proxy may hide the
    port."""
    request = context.get("request")
    if (
        request is None
        or not plain_http.is_for_https_only()
        or getattr(context.get("user"), "is_authenticated", False)
    ):
        return {}
    addresses = plain_http.https_addresses()
    names = {urlsplit(address).hostname for address in addresses}
    return {"addresses": [] if split_domain_port(request.get_host())[0] in names else addresses}


def _models(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    """Whether only the demo model answers, for those who can change that."""
    if not user.has_perm("agent.add_modelendpoint"):
        return {}
    rows = ModelEndpoint.objects.filter(enabled=True, can_chat=True, environment="")
    return {"lacks_model": not settings.UPSTREAM_ENDPOINT and not rows.exists()}


def _bots(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    if not user.has_perm("onebot.view_bot"):
        return {}
    return {"sees_bots": True, "bots": Bot.objects.filter(online=True)[:BOT_LIMIT]}


def _messages(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    if not user.has_perm("agent.view_message"):
        return {}
    waiting = Message.objects.filter(UNSETTLED).order_by()[: WAITING_LIMIT + 1].count()
    failed = (
        Message.objects.filter(state=MessageState.FAILED)
        .select_related("session")
        .defer("segments", "raw")
    )
    spent = load_spent(SumRange(SpendKind.TOTAL, "", current_day()))
    return {
        "sees_messages": True,
        "waiting": _bounded(waiting),
        "tokens": spent.tokens,
        "most_tokens": settings.TOKENS_PER_DAY,
        "costs": [cost_words(cost, currency) for currency, cost in sorted(spent.costs.items())],
        "failed_messages": list(failed.order_by("-pk")[:FAILURE_LIMIT]),
    }


def _silence(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    """Where nothing is said, by decision or, of the chats with the newest messages, because an
    account cannot."""
    if not user.has_perm("agent.view_manners"):
        return {}
    silencing = list(Manners.objects.filter(enabled=True, silenced=True))
    recent = ChatSession.objects.order_by("-last_message_at", "-pk").values("pk")[:WAITING_LIMIT]
    paused = ChatSession.objects.filter(is_paused(timezone.now()), pk__in=recent).order_by().count()
    return {
        "sees_manners": True,
        "is_all_silenced": any(map(is_for_everything, silencing)),
        "silencing": len(silencing),
        "paused": paused,
    }


def _approvals(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    if not user.has_perm("agent.view_approval"):
        return {}
    asked = (
        Approval.objects.filter(state=ApprovalState.WAITING).order_by()[: WAITING_LIMIT + 1].count()
    )
    return {"sees_approvals": True, "approvals": _bounded(asked)}


def _tools(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    if not user.has_perm("tools.view_toolconfig"):
        return {}
    return {"unlooked": ToolConfig.objects.filter(LOOK_NEEDED).count()}


def _bounded(count: int) -> str:
    return f"{WAITING_LIMIT:,}+" if count > WAITING_LIMIT else str(count)


def _runs(user: PermissionsMixin | AnonymousUser, told: set[int]) -> dict[str, Any]:
    """The last failed runs, without those whose message is already in ``told``."""
    if not user.has_perm("agent.view_run"):
        return {}
    failed = (
        Run.objects.filter(state=RunState.FAILED)
        .defer("notes", "final_text")
        .order_by("-pk")[:FAILURE_LIMIT]
    )
    return {"sees_runs": True, "failed_runs": [run for run in failed if run.message_id not in told]}


def _sign_ins(user: PermissionsMixin | AnonymousUser) -> dict[str, Any]:
    """Who failed to sign in lately, and who did not."""
    if not user.has_perm("auth.view_user"):
        return {}
    lately = list(
        FailedSignIns.objects.filter(last_at__gt=timezone.now() - timedelta(hours=24)).order_by(
            "-hour"
        )
    )
    signed_in = (
        SignInRecord.objects.filter(signed_in_at__isnull=False)
        .select_related("user")
        .order_by("-signed_in_at")
    )
    return {
        "sees_sign_ins": True,
        "failed_sign_ins": sum(each.count for each in lately),
        "last_failed_sign_in": lately[0] if lately else None,
        "sign_ins": list(signed_in[:SIGN_IN_LIMIT]),
    }
