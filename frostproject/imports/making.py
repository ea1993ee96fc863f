"""What a plan would do here, row by row, and doing it: all in one transaction, with the history of
rows that were made by hand."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Model, TextChoices
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _, gettext_lazy, pgettext

from agent.admin.endpoints.form import EndpointForm
from agent.domain.endpoint import ModelRole
from agent.domain.notes import NoteViewer
from agent.llm.providers.presets import PRESETS
from agent.memory.notes_store import NewNote, NoteResult, write_notes
from agent.models import EndpointChoice, Manners, ModelEndpoint, Note, Persona, PersonaPicture
from agent.models.manners import SAID
from agent.models.note import note_fingerprint
from agent.models.scope import SCOPE
from agent.pages import persona_file
from frostproject.imports.plan import Found, ImportRefused, Kind, Wanted
from onebot.models import Bot
from tools.admin.settings_page import field_label, format_field_value, problem_lines, read_sealed
from tools.http_tools.admin.openapi import (
    MAX_CHOSEN,
    SKIP,
    PlannedTool,
    plan_tools,
    propose_tool_names,
    save_plan,
)
from tools.http_tools.openapi.drafts import outline_document
from tools.mcp.admin.exchange import ImportAction, ImportRights, plan_import
from tools.mcp.config_json import ConfigUnreadable, parse_mcp_servers
from tools.mcp.settings import may_run_commands
from tools.models.change import ChangeKind
from tools.models.row_history import record_event
from tools.secrets.masked import mask_url
from tools.text.readable import shorten_text

#: Characters of one value that a preview shows.
SHOWN = 200


class Outcome(TextChoices):
    """What becomes of a row."""

    MAKE = "make", gettext_lazy("new")
    SAME = "same", gettext_lazy("there already")
    TAKEN = "taken", gettext_lazy("name taken")
    REFUSE = "refuse", gettext_lazy("refused")


@dataclass(slots=True)
class Planned:
    """One row: what becomes of it, its ``facts`` without keys, and what is to be said. ``save``
    returns the rows that it has made."""

    kind: Kind
    name: str
    outcome: Outcome = Outcome.MAKE
    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    save: Callable[[], Sequence[Model]] = tuple

    @property
    def kind_words(self) -> str:
        return str(apps.get_model(self.kind)._meta.verbose_name)

    def refuse(self, *lines: str) -> "Planned":
        """Keep the row from being made, where there are reasons to."""
        if lines:
            self.outcome, self.notes = Outcome.REFUSE, [*self.notes, *lines]
        return self

    def meet(self, *, is_same: bool) -> "Planned":
        """There is a row of this name already; it stays as it is."""
        words = _("A row of this name says something else. It stays as it is; rename one.")
        self.outcome = Outcome.SAME if is_same else Outcome.TAKEN
        self.notes += [] if is_same else [words]
        return self


@dataclass(slots=True)
class Plan:
    """What becomes of each row, and what stays behind."""

    rows: list[Planned]
    left: list[str]

    @property
    def made(self) -> int:
        return sum(one.outcome == Outcome.MAKE for one in self.rows)


def plan(found: Found, user: User | None) -> Plan:
    """What making the rows of ``found`` would do for ``user``; None is whoever is at the command
    line, who reaches the database anyway. Nothing is changed."""
    accounts = list(Bot.objects.order_by("self_id").values_list("self_id", flat=True))
    left, seen = list(found.left), set()
    rows: list[Planned] = []
    servers: dict[str, Any] = {}
    for wanted in sorted(found.rows, key=lambda one: list(Kind).index(one.kind)):
        key = (wanted.kind, wanted.name, wanted.by_account and str(wanted.values))
        if key in seen:
            left.append(f"{wanted.name}: {_('This name stands here twice.')}")
        elif wanted.by_account and not accounts:
            what = [wanted.name, *str(wanted.values.get("chats") or "").split()]
            words = _("no account is known here yet; connect one, then import again")
            left.append(f"{' '.join(what)}: {words}")
        elif not may_add(user, wanted.kind):
            words = _("You may not add rows of this kind.")
            rows.append(Planned(wanted.kind, wanted.name).refuse(words))
        elif wanted.kind == Kind.SERVER:
            servers[wanted.name] = dict(wanted.values)
        else:
            rows += _plan_wanted(wanted, accounts, user)
        seen.add(key)
    rows += _plan_servers(servers, user) if servers else ()
    return Plan(rows, list(dict.fromkeys(left)))


def may_add(user: User | None, kind: Kind) -> bool:
    """Whether ``user`` may have such a row made; None may."""
    return user is None or user.has_perm(kind.replace(".", ".add_"))


def make(planned: Plan, author: User | None) -> None:
    """Make the rows that are new: all, or none where one fails. ``author`` is None for the command
    line."""
    try:
        with transaction.atomic():
            for one in (one for one in planned.rows if one.outcome == Outcome.MAKE):
                for row in (made := one.save()):
                    record_event(author, row, ChangeKind.ADDED, [{"added": {}}])
                full = _("There is no room for more notes about them.")
                one.refuse(*([] if made else [full]))
    except IntegrityError as error:
        why = _("Somebody has made a row of the same name meanwhile: nothing was imported.")
        raise ImportRefused(why) from error


def _plan_wanted(wanted: Wanted, accounts: list[str], user: User | None) -> Iterator[Planned]:
    match wanted.kind:
        case Kind.ENDPOINT:
            yield _plan_endpoint(wanted, user)
        case Kind.PERSONA:
            yield _plan_persona(wanted)
        case Kind.TOOLS:
            yield from _plan_tools(wanted.values["document"])
        case Kind.NOTE:
            yield from (_plan_note(wanted, account) for account in accounts)
        case _:
            for account in accounts if wanted.by_account else [""]:
                name = f"{wanted.name} ({account})" if account else wanted.name
                row = Manners(**{"name": name, "account": account, **wanted.values})
                yield _plan_row(wanted.kind, row, (*SCOPE, *SAID))


# --- Rows whose fields the plan names ------------------------------------------------


def _plan_row(kind: Kind, row: Any, names: Sequence[str]) -> Planned:
    """A row that is checked as its form checks it, and compared with one of the same name."""
    before = type(row).objects.filter(name=row.name).first()
    one = Planned(kind, row.name, save=partial(_save_row, row))
    try:
        row.full_clean(validate_unique=before is None)
    except ValidationError as error:
        one.refuse(*problem_lines(error, type(row)))
    said = {name: getattr(row, name) for name in names}
    one.facts = [
        (field_label(type(row), name), _shown(format_field_value(type(row), name, value)))
        for name, value in said.items()
        if value != type(row)._meta.get_field(name).get_default()
    ]
    if before is None or one.outcome == Outcome.REFUSE:
        return one
    return one.meet(is_same=all(getattr(before, name) == value for name, value in said.items()))


def _shown(text: str) -> str:
    return shorten_text(" ".join(text.split()), SHOWN)


def _plan_persona(wanted: Wanted) -> Planned:
    values = dict(wanted.values)
    endpoints = values.pop("endpoints", [])
    url = values.pop(persona_file.PICTURE, "")
    picture = persona_file.read_picture(url) if url else b""
    row = Persona(name=wanted.name, **values)
    one = _plan_row(Kind.PERSONA, row, persona_file.FIELDS)
    one.facts += [(_("endpoints"), ", ".join(endpoints))] if endpoints else []
    one.facts += [(_("Picture"), filesizeformat(len(picture)))] if picture else []
    if one.outcome == Outcome.SAME:
        here = persona_file.load_picture(Persona.objects.get(name=wanted.name))
        one.meet(is_same=here == picture)
    one.save = partial(_save_persona, row, endpoints, picture)
    return one


def _save_persona(row: Persona, endpoints: list[str], picture: bytes) -> list[Model]:
    row.save()
    if picture:
        PersonaPicture.objects.create(persona=row, content=picture)
    known = ModelEndpoint.objects.in_bulk(endpoints, field_name="name")
    for position, name in enumerate(dict.fromkeys(endpoints), start=1):
        if name in known:
            EndpointChoice.objects.create(
                persona=row, role=ModelRole.CHAT, position=position, endpoint=known[name]
            )
    return [row]


# --- Endpoints -------------------------------------------------------------------------


class _EndpointForm(EndpointForm):
    """The form as a person fills it in; what the plan does not name stays as in a new row."""

    is_partial = True


def _plan_endpoint(wanted: Wanted, user: User | None) -> Planned:
    given = dict(wanted.values)
    url, model, keys = given["base_url"], given["model"], list(dict.fromkeys(given["keys"]))
    marks = {name: value for name, value in given.items() if isinstance(value, bool)}
    texts = {name: json.dumps(given[name]) for name in ("headers", "extra_body") if given.get(name)}
    texts |= {"base_url": url, "model": model, "name": wanted.name, "keys": "\n".join(keys)}
    texts["timeout_seconds"] = given.get("timeout_seconds", "")
    hosts = {urlsplit(one.base_url).netloc: one.id for one in PRESETS.values() if one.needs_key}
    texts["preset"] = hosts.get("".join(url.split("/")[2:3]).lower(), "") if keys else ""
    form = _EndpointForm(texts, instance=ModelEndpoint(**marks))
    form.user = user or User(is_superuser=True)
    one = Planned(Kind.ENDPOINT, wanted.name, save=lambda: [form.save()])
    one.facts = [
        (field_label(ModelEndpoint, "base_url"), mask_url(url) or "-"),
        (field_label(ModelEndpoint, "model"), model or "-"),
        (pgettext("model endpoint", "key"), _("yes") if keys else _("no")),
        (field_label(ModelEndpoint, "enabled"), _("yes") if marks["enabled"] else _("no")),
    ]
    if before := ModelEndpoint.objects.filter(name=wanted.name).first():
        here = (before.base_url, before.model, read_sealed(before, "keys"))
        form.full_clean()
        return one.meet(is_same=here == (form.cleaned_data.get("base_url"), model, keys))
    return one.refuse(*_list_faults(form))


def _list_faults(form: EndpointForm) -> Iterator[str]:
    for name, lines in form.errors.items():
        label = "" if name == "__all__" else f"{field_label(ModelEndpoint, name)}: "
        yield from (f"{label}{line}" for line in lines)


# --- Notes, servers, tools ---------------------------------------------------------------


def _plan_note(wanted: Wanted, account: str) -> Planned:
    text, person, group = (wanted.values[name] for name in ("text", "person", "group"))
    chat = f"group:{group}" if group else f"private:{person}"
    wish = NewNote(
        NoteViewer("onebot", account, chat, person),
        text,
        tuple(wanted.values["tags"]),
        person=person,
        visibility=Note.Visibility.CHAT if group else Note.Visibility.PERSON,
        source=Note.Source.EXTRACTED,
    )
    about = {"account": account, "owner_id": group or person, "visibility": wish.visibility}
    facts = [(field_label(Note, "text"), _shown(text))]
    name = f"{wanted.name} ({account})"
    one = Planned(Kind.NOTE, name, facts=facts, save=partial(_save_note, wish))
    is_there = Note.objects.filter(fingerprint=note_fingerprint(text), **about).exists()
    return one.meet(is_same=True) if is_there else one


def _save_note(wish: NewNote) -> list[Model]:
    written = write_notes(wish)
    is_written = written.fate in (NoteResult.DONE, NoteResult.KNOWN)
    return [Note.objects.get(pk=written.pk)] if is_written else []


def _plan_servers(servers: dict[str, Any], user: User | None) -> Iterator[Planned]:
    """As the page of MCP servers imports them, but nothing that is there is replaced."""
    try:
        configs = parse_mcp_servers(json.dumps({"mcpServers": servers}))
    except ConfigUnreadable as error:
        raise ImportRefused(error) from error
    rights = ImportRights(user is None or may_run_commands(user), lambda row: True)
    for planned in plan_import(configs, rights, replaces=True):
        save = partial(_save_row, planned.row)
        one = Planned(Kind.SERVER, planned.name, notes=list(planned.notes), save=save)
        one.facts = [(label, now) for label, _was, now in planned.differences]
        if planned.row.pk is not None and not planned.problems:
            one.meet(is_same=planned.action == ImportAction.NOTHING)
        yield one.refuse(*planned.problems)


def _save_row(row: Model) -> list[Model]:
    row.save()
    return [row]


def _plan_tools(document: dict[str, Any]) -> Iterator[Planned]:
    """As the page of HTTP tools imports them, switched off; secrets are entered there."""
    outline = outline_document(document, "")
    choice = {"server": next(iter(outline.servers), ""), "existing": SKIP, "enabled": False}
    names, operations = propose_tool_names(outline, ""), outline.operations[:MAX_CHOSEN]
    for planned in plan_tools(document, names, operations, choice | {"name_prefix": ""}):
        facts = [(_("operation"), planned.draft.operation.key)]
        one = Planned(Kind.TOOLS, planned.row.name, facts=facts, save=partial(_save_tool, planned))
        one.refuse(*filter(None, [planned.problem]))
        yield one.meet(is_same=True) if planned.is_there else one


def _save_tool(planned: PlannedTool) -> list[Model]:
    save_plan([planned], {})
    return [planned.row]
