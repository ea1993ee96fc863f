"""The navigation: places grouped by what people do, in one table."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from frostproject.cockpit.tables import name_table


@dataclass(frozen=True, slots=True)
class NavigationPlace:
    """A page that is not a table's: the name of its address, what it is called, and the permission
    that it takes ("" for none)."""

    url_name: str
    label: str | Promise
    permission: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Places of one kind of work: a :class:`NavigationPlace`, or a model as ``app.Model``."""

    key: str
    label: str | Promise
    places: tuple[NavigationPlace | str, ...]


#: What people do, most often first. A place whose address does not exist is left out, and so is
#: one that the user may not see. A model that stands nowhere is put at the end.
NAVIGATION: tuple[Group, ...] = (
    Group(
        "today",
        _("Today"),
        (
            NavigationPlace("admin:index", _("Overview")),
            NavigationPlace("admin:start", _("First steps"), "onebot.change_bot"),
            "agent.Approval",
            "agent.NoteProposal",
            NavigationPlace("admin:playground", _("Playground"), "agent.use_playground"),
        ),
    ),
    Group(
        "chats",
        _("Chats"),
        (
            "agent.ChatSession",
            "agent.Message",
            "agent.Run",
            NavigationPlace("admin:people", _("People"), "agent.view_message"),
            "onebot.Bot",
        ),
    ),
    Group(
        "tools",
        _("Tools"),
        (
            "tools.ToolConfig",
            "agent.ToolCall",
            "tools.HttpTool",
            "tools.McpServer",
            "tools.Plugin",
            "tools.Secret",
        ),
    ),
    Group(
        "models",
        _("Models and personas"),
        (
            "agent.ModelEndpoint",
            "agent.Persona",
            "agent.PersonaChoice",
            "agent.Budget",
            "agent.SpendSum",
        ),
    ),
    Group(
        "memory",
        _("Memory and files"),
        ("agent.Note", "agent.Sticker", "agent.MediaFile", "agent.KeptFile"),
    ),
    Group(
        "settings",
        _("Settings"),
        (
            "agent.Manners",
            "agent.Installation",
            "auth.User",
            "auth.Group",
            NavigationPlace("admin:sign_in_sessions", _("Sign-in sessions")),
            NavigationPlace("admin:second_factor", _("Second factor")),
        ),
    ),
    Group(
        "raw",
        _("Raw records"),
        (
            "tools.ToolConfigChange",
            "agent.OperatorAct",
            "agent.Step",
            "agent.Description",
            "agent.Digest",
            "onebot.ClientEvent",
            "tools.PluginValue",
            NavigationPlace("admin:log", _("Log"), "agent.view_log"),
        ),
    ),
)

User = PermissionsMixin | AnonymousUser
Entry = dict[str, Any]


def list_groups(
    request: HttpRequest, apps: Iterable[Mapping[str, Any]], groups: Iterable[Group] = NAVIGATION
) -> list[Entry]:
    """The navigation for a user: ``apps`` as :meth:`AdminSite.get_app_list` gives them, put into
    ``groups``, each in the same form as an app, with ``is_current`` at the entry where the request
    is."""
    models = {model["model"]._meta.label: model for app in apps for model in app["models"]}
    found = [(group, list(_entries(request.user, group, models))) for group in groups]
    if models and found:  # what no group names
        found[-1][1].extend({**model} for model in models.values())
    shown = [(group, entries) for group, entries in found if entries]
    _mark_current(request.path, [entry for _group, entries in shown for entry in entries])
    return [
        {
            "name": group.label,
            "app_label": group.key,
            "app_url": "",
            "has_module_perms": True,
            "models": entries,
        }
        for group, entries in shown
    ]


def current_group(groups: Iterable[Entry]) -> str:
    """What the group is called in which the request is; "" in none."""
    names = (
        str(group["name"])
        for group in groups
        for entry in group["models"]
        if entry.get("is_current")
    )
    return next(names, "")


def _entries(user: User, group: Group, models: dict[str, Any]) -> Iterator[Entry]:
    """The entries of a group that the user may see; the models among them are taken out of
    ``models``."""
    for place in group.places:
        if isinstance(place, str):
            if model := models.pop(place, None):
                yield {**model, "name": name_table(model["model"]._meta)}
        elif not place.permission or user.has_perm(place.permission):
            try:
                address = reverse(place.url_name)
            except NoReverseMatch:
                continue
            yield {
                "name": place.label,
                "object_name": place.url_name.replace(":", "-"),
                "admin_url": address,
                "add_url": None,
                "view_only": True,
                "perms": {},
            }


def _mark_current(path: str, entries: list[Entry]) -> None:
    """Mark the entry whose address is the longest that ``path`` begins with; the overview only
    where it is the page."""
    index = reverse("admin:index")
    near = [
        entry
        for entry in entries
        if (address := entry.get("admin_url"))
        and (path == address or (address != index and path.startswith(address)))
    ]
    for entry in sorted(near, key=lambda one: len(one["admin_url"]))[-1:]:
        entry["is_current"] = True
