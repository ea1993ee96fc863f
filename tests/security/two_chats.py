"""Chats of several owners, each with a row of every kind, whose words and numbers nobody else is to
meet."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any
from unittest import mock

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.core import serializers
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.urls.converters import SlugConverter
from django.utils import timezone

from agent.admin.chats.acts import ACTS
from agent.admin.chats.sessions import EXPORT_FORMS
from agent.models import (
    Approval,
    Budget,
    ChatEvent,
    ChatGrant,
    ChatSession,
    Description,
    Digest,
    JoinRequest,
    KeptFile,
    Manners,
    Message,
    MessageMedia,
    Note,
    NoteProposal,
    OperatorAct,
    Persona,
    PersonaChoice,
    Reminder,
    ResultPicture,
    Run,
    SpendSum,
    Sticker,
    ToolCall,
)
from frostproject.cockpit import error_pages
from onebot.models import Bot, ClientEvent
from tests.admin.record import answered, call_of, chat, make_groups, said, signed_in, step_of
from tools.models import ToolConfigChange

#: Rows that are made up on demand or belong to the program; and what a page does on its own.
UNTOUCHED = {"sessions", "admin", "contenttypes", "frostproject", "tools.ConfigVersion"}


#: A person who speaks in every chat.
EVERYWHERE = "20005555"
#: People that pages are about: that one, and one of another chat.
PEOPLE = (EVERYWHERE, "20008888")
#: What an address names besides its row, such as a message: of one's own chat, and of two others.
FURTHER = (1, 2, 5, 9)
#: The number of no row.
ABSENT = 4711


@contextlib.contextmanager
def refusals_drawn_once() -> Iterator[None]:
    """What a refused page shows is, but for its address, the same for all that one person is
    refused: walks draw one of each status, and are given it again."""
    drawn: dict[int, bytes] = {}

    def draw(request: HttpRequest, name: str, context: Any, *, status: int) -> HttpResponse:
        if status not in drawn:
            page = render(request, name, context, status=status).content
            drawn[status] = page.replace(request.path.encode(), b"")
        return HttpResponse(drawn[status], status=status)

    with mock.patch.object(error_pages, "render", draw):
        yield


@dataclass(frozen=True, slots=True)
class Owned:
    """A chat and what tells it from every other one."""

    session: ChatSession
    account: str
    marks: tuple[str, ...]


def fill(account: str, peer: str, word: str, person: str) -> Owned:
    """A group with a row of every kind, each with ``word`` in it where it holds words at all."""
    Bot.objects.get_or_create(self_id=account, defaults={"implementation": f"{word}-client"})
    session = chat(peer, account=account, title=f"{word}-title")
    ChatSession.objects.filter(pk=session.pk).update(state={"topic": f"{word}-state"})
    now = timezone.now()
    names: dict[str, Any] = {"sender_id": person, "sender_name": f"{word}-name"}
    message = said(session, f"{word}-said hello", state="answered", message_id=f"m{peer}", **names)
    out = answered(message, f"{word}-answer hello")
    run: Any = out.run
    Run.objects.filter(pk=run.pk).update(notes=[f"{word}-note"], input_tokens=int(peer[:7]))
    step = step_of(run, request=[{"role": "user", "content": f"{word}-request"}])
    call = call_of(step, arguments={"a": f"{word}-argument"}, result=f"{word}-result hello")
    said(session, f"{word}-shared hello", sender_id=EVERYWHERE, sender_name=f"{word}-card")
    said(session, f"{word}-failed hello", state="failed", detail=f"{word}-detail", **names)
    Approval.objects.create(
        call=call, session=session, code=f"c{peer}", created_at=now,
        expires_at=now + timedelta(hours=1), arguments={"a": f"{word}-asked"},
    )  # fmt: skip
    trial = Run.objects.create(
        started_at=now, state="finished", origin="test", trial_of=message, author="x",
        final_text=f"{word}-trial hello",
    )  # fmt: skip
    step_of(trial, request=[{"role": "user", "content": f"{word}-trial-request"}])
    Digest.objects.create(
        session=session, kind="summary", first_run=1, last_run=run.pk, created_at=now,
        text=f"{word}-digest hello",
    )  # fmt: skip
    Reminder.objects.create(
        session=session, text=f"{word}-reminder hello", set_by=person, due_at=now,
        outcome=f"{word}-outcome",
    )  # fmt: skip
    JoinRequest.objects.create(
        account=account, kind="join", user_id=person, group_id=peer, flag=peer, key=f"k{peer}",
        comment=f"{word}-comment hello",
    )  # fmt: skip
    Note.objects.create(
        account=account, chat=session.key, owner_kind="person", owner_id=person, said_by=person,
        text=f"{word}-memory hello", message=message,
    )  # fmt: skip
    _media(message, call, word, peer)
    _of_everybody(account, session, word, person)
    OperatorAct.objects.create(
        session=session, kind="silence", author_name=f"{word}-author", at=now, detail=f"{word}-act"
    )
    ChatEvent.objects.create(
        session=session, key=peer, kind="card", user_id=person, at=now, words=f"{word}-new card"
    )
    return Owned(session, account, (word, peer, person))


def _media(message: Message, call: ToolCall, word: str, peer: str) -> None:
    now = timezone.now()
    kept = [
        KeptFile.objects.create(
            sha256=f"{peer}{place}".ljust(64, "a"), mime=f"image/{word.lower()}",
            created_at=now, last_used_at=now,
        )
        for place in (1, 2)
    ]  # fmt: skip
    described = Description.objects.create(
        content=kept[0].sha256, prompt_kind="default", model="m", text=f"{word}-seen hello",
        created_at=now,
    )  # fmt: skip
    MessageMedia.objects.create(
        message=message, kind="image", name=f"{word}-picture", kept=kept[0],
        description=described, created_at=now,
    )  # fmt: skip
    ResultPicture.objects.create(
        session=message.session, call=call, name="c1", position=0, kept=kept[1], created_at=now
    )


def _of_everybody(account: str, session: ChatSession, word: str, person: str) -> None:
    """Rows of no single chat that name this one."""
    day = f"{timezone.localdate():%Y-%m-%d}"
    for kind, subject in (("chat", f"{account}/{session.key}"), ("person", person)):
        SpendSum.objects.create(
            day=day, kind=kind, subject=subject, input_tokens=int(session.peer_id[:7])
        )
    Budget.objects.create(name=f"{word}-budget", kind="chat", subject=session.key, limit=1,
                          unit="tokens", period="day", at_limit="cheaper")  # fmt: skip
    Sticker.objects.create(path=f"{word}.png", words=f"{word}-sticker", sha256="", stamp="")
    Manners.objects.create(name=f"{word}-manners", account=account, chats=session.key)
    persona = Persona.objects.create(name=f"Persona {session.pk}", prompt=f"{word}-prompt")
    PersonaChoice.objects.create(
        persona=persona, account=account, chat_kind="group", peer_id=session.peer_id
    )
    NoteProposal.objects.create(
        kind="retire", created_at=timezone.now(), note_ids=[1], text=f"{word}-proposal",
        before=[{"pk": 1, "text": f"{word}-before"}],
    )  # fmt: skip
    ClientEvent.objects.create(
        self_id=account, post_type="notice", detail_type=f"{word}-event", raw={"user_id": person},
        created_at=timezone.now(),
    )  # fmt: skip
    ToolConfigChange.objects.create(
        subject=f"agent.chatsession:{session.pk}", name=f"{word}-changed",
        before={"state": {}}, after={"state": {"topic": f"{word}-after"}},
    )  # fmt: skip


def owner_of(*places: tuple[str, str], is_tempted: bool = False) -> Client:
    """A browser of a chat owner of ``places``: account, and chat or "" for all of its chats.
    ``is_tempted``: with every permission there is, but to see every chat."""
    user = User.objects.create_user(f"owner{User.objects.count()}", is_staff=True)
    if not Group.objects.filter(name="chat_owner").exists():
        make_groups()
    user.groups.add(Group.objects.get(name="chat_owner"))
    if is_tempted:
        every = Permission.objects.filter(content_type__app_label__in=("agent", "onebot", "tools"))
        user.user_permissions.set(every.exclude(codename="view_every_chat"))
    for account, key in places:
        ChatGrant.objects.create(user=user, account=account, chat=key)
    return signed_in(user, raise_request_exception=False)


def every_address(*, by_post: bool = False) -> Iterator[str]:
    """Every address of the admin with each row that there is, and one that is not there, of the
    table that it is about. Acts on a chat look at a row only where they are asked ``by_post``, and
    have the first one alone otherwise. What deletes a row or tells its history finds it as its page
    does: the first and the last will do."""
    tables = {
        f"{one._meta.app_label}_{one._meta.model_name}_": [*_keys_of(one), ABSENT]
        for one in apps.get_models()
        if one._meta.managed
    }
    for pattern in admin.site.get_urls():
        for one in getattr(pattern, "url_patterns", [pattern]):
            name, converters = getattr(one, "name", None), getattr(one, "pattern").converters  # noqa: B009
            if name is None:
                continue
            about = next((keys for start, keys in tables.items() if name.startswith(start)), None)
            acts = [key for key, kind in converters.items() if isinstance(kind, SlugConverter)]
            firsts = about or [*PEOPLE, *FURTHER, ABSENT]
            if about and name.endswith(("_delete", "_history")):
                firsts = [about[0], *about[-2:]]
            words = [*ACTS, *(form for form, _name in EXPORT_FORMS)]
            values = [
                (words if by_post else words[:1]) if key in acts
                else (firsts[:1] if acts and not by_post else firsts) if place == 0
                else FURTHER if by_post else FURTHER[:2]
                for place, key in enumerate(converters)
            ]  # fmt: skip
            for given in product(*values):
                with contextlib.suppress(NoReverseMatch):
                    yield reverse(f"admin:{name}", kwargs=dict(zip(converters, given, strict=True)))


def _keys_of(model: type[Model]) -> list[Any]:
    found = list(model._base_manager.order_by("pk").values_list("pk", flat=True))
    return [*found[:6], *found[6:][-1:]]


def every_row() -> dict[str, str]:
    """All rows of the database, as text, by model."""
    return {
        model._meta.label: serializers.serialize("json", model._base_manager.order_by("pk"))
        for model in apps.get_models()
        if model._meta.managed and not UNTOUCHED & {model._meta.app_label, model._meta.label}
    }
