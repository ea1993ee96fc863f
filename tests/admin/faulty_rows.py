"""A record in which everything has gone wrong that can, as the program writes it down."""

from datetime import timedelta

from django.utils import timezone

from agent.domain.states import (
    ActKind,
    ApprovalState,
    MessageReason,
    MessageState,
    RunState,
    ToolCallState,
)
from agent.models import (
    Approval,
    ChatSession,
    EndpointStatus,
    Message,
    ModelEndpoint,
    OperatorAct,
    SpendSum,
)
from onebot.models import Bot, ClientEvent
from tests.admin.record import call_of, run_for, said, step_of
from tests.security.two_chats import fill
from tools.mcp.models import McpServerStatus
from tools.models import McpServer, Plugin, ToolConfigChange
from tools.plugins.models import PluginCrash, PluginLogLine, PluginStatus

MODEL_ERRORS = (
    "the endpoint answered 401: Incorrect API key provided",
    "the endpoint answered 402: Insufficient Balance",
    "the endpoint answered 404: model not found",
    "the endpoint answered 429: rate limit reached",
    "the endpoint answered 500: internal error",
    "the endpoint cannot be reached: Cannot connect to host h:1 ssl:default [Connect call failed]",
    "the endpoint cannot be reached: its certificate is not trusted: x",
    "the endpoint cannot be reached: it does not speak TLS: x",
    "the answer is not JSON: : keep-alive data",
    "the answer is not JSON but a web page: <html>",
    "no answer from the model within 120 s",
    "the model answered with nothing",
    "the answer was kept back by a content filter",
    "the budget “每人每天” is used up",
    "out of model calls",
    "the run took longer than 300 s",
)
SEND_ERRORS = (
    "retcode 100",
    "retcode 1404",
    "no answer within 60 s",
    "result 120: EventChecker Failed",
    "Timeout: NTEvent serviceAndMethod",
    "the message is larger than 64 MiB",
    "the client did not load http://127.0.0.1/x.png",
    "the account is not connected",
)
TOOL_ERRORS = (
    "工具执行失败: 超时",
    "it took longer than 60 s",
    "ConnectError: All connection attempts failed",
)


def fill_with_faults() -> int:
    """How many rows a table has at most."""
    owned = fill("1000111222", "7001234567", "甲\u202e\u2066\u200f\u061c", "20007777")
    session = owned.session
    _runs(session)
    _sends(session)
    _calls(session)
    _outside()
    _models()
    _rest(session)
    return 40


def _runs(session: ChatSession) -> None:
    for error in MODEL_ERRORS:
        message = said(session, "你好", state="failed", detail=error)
        run = run_for(message, state=RunState.FAILED, error=error)
        step_of(run, error=error, finish_reason="error")
    for state in RunState:
        run_for(said(session, "你好", state="answered"), state=state)
    for reason in MessageReason:
        said(session, "你好", state="silent", reason=reason, sender_name="")
    for outcome in MessageState:
        said(session, "你好", state=outcome)


def _sends(session: ChatSession) -> None:
    now = timezone.now()
    for error in SEND_ERRORS:
        for state in ("failed", "unknown"):
            run = run_for(said(session, "你好", state="failed", detail=error))
            Message.objects.create(
                session=session, direction="out", state=state, text="好", detail=error, run=run,
                created_at=now,
            )  # fmt: skip


def _calls(session: ChatSession) -> None:
    now = timezone.now()
    run = run_for(said(session, "你好", state="answered"))
    step = step_of(run)
    wanted = [(state, error) for state in ToolCallState for error in TOOL_ERRORS]
    for position, (state, error) in enumerate(wanted):
        call_of(step, state=state, error=error, result=error, position=position)
    for number, decision in enumerate(ApprovalState):
        call = call_of(step, state="pending", position=100 + number)
        Approval.objects.create(
            call=call, session=session, code=f"90000{number}", state=decision, created_at=now,
            expires_at=now + timedelta(hours=1), arguments={"a": "b"},
        )  # fmt: skip
    for kind in ActKind:
        OperatorAct.objects.create(session=session, kind=kind, author_name="阿雪", at=now)


def _outside() -> None:
    now = timezone.now()
    server = McpServer.objects.create(name="files", transport="http", url="http://127.0.0.1:1/mcp")
    for number, error in enumerate(
        ("Connection refused", "Client error '401 Unauthorized'", "timed out", "OSError: [Errno 2]")
    ):
        McpServerStatus.objects.create(
            server=server, process_id=f"p{number}", state="failed", error=error, error_at=now,
            seen_at=now,
        )  # fmt: skip
    plugin = Plugin.objects.create(
        folder="jia",
        plugin_id="jia",
        enabled=True,
        fault="It did not take the new configuration: x",
    )
    PluginStatus.objects.create(
        plugin=plugin, process_id="p", state="broken", crashes=5, seen_at=now,
        error="它没有接受新的配置：x",
    )  # fmt: skip
    PluginCrash.objects.create(
        plugin=plugin, at=now, reason="It ended by itself, with exit code 1.", detail="x"
    )
    PluginLogLine.objects.create(plugin=plugin, at=now, level="info", text="x")


def _models() -> None:
    now = timezone.now()
    for number, error in enumerate(MODEL_ERRORS):
        endpoint = ModelEndpoint.objects.create(name=f"端点{number}", base_url="http://m/v1")
        EndpointStatus.objects.create(endpoint=endpoint, error=error, error_at=now)
    SpendSum.objects.create(day="2026-10-25", kind="endpoint", subject="1")


def _rest(session: ChatSession) -> None:
    now = timezone.now()
    Bot.objects.create(self_id="1000333444", online=True, roles="universal", connected_at=now)
    for post_type, detail in (("request", "friend"), ("request", "group"), ("notice", "notify"),
                              ("notice", "group_ban"), ("meta_event", "lifecycle")):  # fmt: skip
        ClientEvent.objects.create(
            self_id="1000333444", post_type=post_type, detail_type=detail, raw={}, created_at=now
        )
    ToolConfigChange.objects.create(
        subject="tools.secret:1", name="hosts", before={"hosts": "a"}, after={"hosts": "b"}
    )
