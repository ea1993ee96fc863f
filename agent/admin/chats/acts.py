"""The acts on the page of a chat, each on record with its author."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext

from agent.admin.chats.act_basics import ActCall, ActDone, ActRefused, may
from agent.admin.chats.compose import COMPOSE_ACTS, MOST_CHARS, MOST_PICTURES, new_token
from agent.admin.chats.steering_acts import HOURS, STEERING_ACTS, hours_in_words
from agent.models import ChatSession, Message, PersonaChoice
from agent.record.chats.members import find_members
from agent.record.settings.chat_choices import list_personas
from agent.record.settings.manners import ONEBOT, load_manners_table
from agent.record.waiting.hand_messages import find_address
from tools.admin.record_pages import ModelAdmin, parse_row_number
from tools.text.visible import escape_invisible_chars

ACTS = {**STEERING_ACTS, **COMPOSE_ACTS}
#: People that can be chosen to be mentioned.
MOST_MEMBERS = 100
#: Characters that are shown of a quoted message.
QUOTED_CHARS = 120


class SessionActs(ModelAdmin):
    """The address of each act, for the pages of chats."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act_view)
        own = [
            path("<int:pk>/act/<slug:name>/", view, name="agent_chatsession_act"),
            path("<int:pk>/act/<slug:name>/<int:message_pk>/", view, name="agent_chatsession_act"),
        ]
        return [*own, *super().get_urls()]

    def act_view(
        self, request: HttpRequest, pk: int, name: str, message_pk: int | None = None
    ) -> HttpResponse:
        """Do what is asked, if the reader may and reaches the chat; then back to the place on the
        page. An act that is refused changes nothing."""
        session = get_object_or_404(self.get_queryset(request), pk=parse_row_number(str(pk)))
        act = ACTS.get(name)
        if act is None or act.on_message != (message_pk is not None):
            raise Http404
        if not may(request, act):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        message = None
        if message_pk is not None:
            rows = Message.objects.filter(session=session).select_related("run", "session")
            message = get_object_or_404(rows, pk=message_pk)
        call = ActCall(request, session, message)
        try:
            with transaction.atomic():
                done = act.perform(call)
        except ActRefused as refusal:
            return self._back(call, ActDone("", warning=str(refusal)))
        except ValidationError as error:
            return self._back(call, ActDone("", warning=" ".join(error.messages)))
        except IntegrityError:  # the same form came twice at once
            return self._back(call, ActDone(gettext("This was done already, once.")))
        if done.then is not None:
            done.then()
        return self._back(call, done)

    def _back(self, call: ActCall, done: ActDone) -> HttpResponse:
        if done.words:
            self.message_user(call.request, done.words, messages.SUCCESS)
        if done.warning:
            self.message_user(call.request, done.warning, messages.WARNING)
        wanted = call.posted("next")
        if wanted and url_has_allowed_host_and_scheme(wanted, {call.request.get_host()}):
            return redirect(wanted)
        page = reverse("admin:agent_chatsession_change", args=(call.session.pk,))
        return redirect(f"{page}#{done.place}")


def describe_acts(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    """For the page of a chat: what the reader may do there, and what he chooses among."""
    is_chat = session.platform == ONEBOT
    may_act = {
        name.replace("-", "_"): True
        for name, act in ACTS.items()
        if may(request, act) and (is_chat or name == "reset")
    }
    context: dict[str, Any] = {"may_act": may_act}
    if "silence" in may_act:
        manners = load_manners_table().find(find_address(session))
        context["silenced_by"] = manners.find_silence(timezone.now())
    if "take_over" in may_act:
        context["hours"] = [(hours, hours_in_words(hours)) for hours in HOURS]
    if "persona" in may_act:
        context |= _describe_personas(session)
    if "answer" in may_act:
        context |= _describe_form(session, request)
    return context


def _describe_personas(session: ChatSession) -> dict[str, Any]:
    place = {"account": session.account, "chat_kind": session.kind, "peer_id": session.peer_id}
    chosen = PersonaChoice.objects.filter(**place, user_id="").order_by("pk")
    return {
        "personas": list_personas(),
        "chosen_persona": chosen.values_list("persona_id", flat=True).first(),
    }


def _describe_form(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    quote = parse_row_number(request.GET.get("quote", "")) or 0
    quoted = Message.objects.filter(session=session, pk=quote).first() if quote else None
    return {
        "token": new_token(),
        "members": _list_members(session),
        "quoted": quoted,
        "quoted_words": escape_invisible_chars(quoted.text[:QUOTED_CHARS]) if quoted else "",
        "answer_chars": MOST_CHARS,
        "answer_pictures": MOST_PICTURES,
    }


def _list_members(session: ChatSession) -> list[tuple[str, str]]:
    """Ids and names of the people of a group who spoke lately."""
    if session.kind != ChatSession.Kind.GROUP:
        return []
    found = find_members(session.pk)
    names = {pk: escape_invisible_chars(name) for name, pk in found.items() if name != pk}
    people = [(name, names.get(name, name)) for name, pk in found.items() if name == pk]
    return sorted(people, key=lambda one: one[1])[:MOST_MEMBERS]
