"""What is in a kept database: a little of everything that happens, and one row of whatever is left.

It is stored with the models of the day. Databases that are kept already do not change with this.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Model

from agent.models import Approval, ChatSession, Message, Note, Run, ServerProcess, Step, ToolCall
from agent.runtime import wiring
from tools.registry.catalogue import ensure_tool_rows

#: The account, its chats, and what nobody has answered yet in them: a message in hand, and one that
#: waits.
ACCOUNT, PERSON, GROUP = "10001", "20001", "30001"
IN_HAND, WAITING = "what was in hand when the server died", "what was waiting for its turn"
#: A note, and a word of it.
NOTE, NOTE_WORD = "安娜喜欢喝 oolong", "oolong"
PROCESS = "0123456789abcdef0123456789abcdef"
BEGAN = datetime(2025, 1, 6, 8, tzinfo=UTC)

State = Message.State


def tell() -> None:
    """Fill an empty, migrated database."""
    ensure_tool_rows(wiring.declared_tools())
    User.objects.create_superuser("olga", "olga@example.org", "correct horse battery")
    ServerProcess.objects.create(id=PROCESS, host="kept", pid=1, last_seen_at=BEGAN)
    private = chat(ChatSession.Kind.PRIVATE, PERSON)
    answered(private)
    in_hand = incoming(private, IN_HAND, State.RUNNING, claimed_by=PROCESS, message_id="3")
    Run.objects.create(
        session=private, message=in_hand, claimed_by=PROCESS, model="scripted", started_at=BEGAN
    )
    incoming(chat(ChatSession.Kind.GROUP, GROUP), WAITING, State.WAITING, message_id="4")
    audience = {
        "platform": private.platform,
        "account": ACCOUNT,
        "chat": private.key,
        "owner_id": PERSON,
    }
    Note.objects.create(
        text=NOTE, visibility=Note.Visibility.EVERYONE, source=Note.Source.OPERATOR, **audience
    )
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed:
            any_row(model)


def chat(kind: str, peer: str) -> ChatSession:
    return ChatSession.objects.create(
        account=ACCOUNT, kind=kind, peer_id=peer, title=f"{kind} {peer}", last_message_at=BEGAN
    )


def incoming(session: ChatSession, text: str, state: str, **fields: Any) -> Message:
    return Message.objects.create(
        session=session,
        direction=Message.Direction.IN,
        state=state,
        reason=Message.Reason.MENTION
        if session.kind == ChatSession.Kind.GROUP
        else Message.Reason.PRIVATE,
        sender_id=PERSON,
        sender_name="Anna",
        text=text,
        segments=[{"type": "text", "data": {"text": text}}],
        raw={"post_type": "message", "raw_message": text},
        event_key=f"{session.pk}:{fields['message_id']}",
        happened_at=BEGAN,
        created_at=BEGAN,
        **fields,
    )


def answered(session: ChatSession) -> None:
    """A question that was answered with the help of a tool that an owner had approved."""
    ended = BEGAN + timedelta(seconds=9)
    asked = incoming(
        session, "北京天气？", State.ANSWERED, message_id="1", in_history=True, settled_at=ended
    )
    run = Run.objects.create(
        session=session,
        message=asked,
        state=Run.State.FINISHED,
        model="scripted",
        final_text="晴",
        model_calls=1,
        started_at=BEGAN,
        finished_at=ended,
    )
    Message.objects.filter(pk=asked.pk).update(run=run)
    step = Step.objects.create(
        run=run, number=1, created_at=BEGAN, request=[{"role": "user", "content": asked.text}]
    )
    call = ToolCall.objects.create(
        run=run,
        step=step,
        call_id="call_1",
        tool_name="get_weather",
        arguments={"city": "北京"},
        state=ToolCall.State.SUCCEEDED,
        result="晴",
        created_at=BEGAN,
    )
    Approval.objects.create(
        call=call,
        session=session,
        code="ABCD",
        state=Approval.State.APPROVED,
        created_at=BEGAN,
        expires_at=ended,
        decided_at=ended,
    )
    Message.objects.create(
        session=session,
        direction=Message.Direction.OUT,
        state=State.DELIVERED,
        text="晴",
        message_id="2",
        echo="kept-1",
        run=run,
        in_history=True,
        created_at=ended,
        settled_at=ended,
    )


# --- Whatever is left -------------------------------------------------------------


def any_row(model: type[Model]) -> Model:
    """The first row of ``model``, made up where there is none: switched off, and finished with."""
    if (first := model._base_manager.order_by("pk").first()) is not None:
        return first
    row = model(
        **{
            field.attname: value(field)
            for field in model._meta.concrete_fields
            if not _by_itself(field)
        }
    )
    model._base_manager.bulk_create([row])
    return model._base_manager.get()


def _by_itself(field: Any) -> bool:
    is_switch = isinstance(field, models.BooleanField)
    return isinstance(field, models.AutoField) or (field.has_default() and not is_switch)


def value(field: Any) -> Any:
    """Something that fits into ``field``."""
    if field.remote_field is not None:
        return None if field.related_model is field.model else any_row(field.related_model).pk
    if field.choices:
        return field.choices[0][0]
    match field:
        case models.BooleanField():
            return False
        case models.DateTimeField():
            return BEGAN
        case models.IntegerField() | models.FloatField() | models.DecimalField():
            return 7
        case models.JSONField():
            return {"kept": "值"}
        case models.BinaryField():
            return b"\x00\xff"
        case _:
            return str(field)[: field.max_length]
