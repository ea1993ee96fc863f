"""The admin as operators meet it: its pages, and the navigation to them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.admin import AdminSite
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, URLResolver, path, reverse
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.module_loading import import_string
from django.utils.translation import get_language, gettext_lazy as _
from django.views.i18n import JavaScriptCatalog

from frostproject.cockpit.tables import name_table
from frostproject.signin import factors
from frostproject.signin.admin_site import FrostAdminSite

# The operator's pages that belong to no table: each has one line in :data:`PAGES`.

View = Callable[..., HttpResponseBase]

START, OVERVIEW, PEOPLE, SEARCH, SPENDING = (
    f"frostproject.cockpit.{name}"
    for name in ("start", "dashboard", "people", "search", "spending")
)
PLAYGROUND = "onebot.playground.pages"
SEE_CHATS, SEE_PEOPLE = ("agent.view_chatsession",), ("agent.view_message",)
ERASE_PEOPLE = ("agent.erase_person", "agent.view_every_chat")
PLAY = ("agent.use_playground",)
READ, POST = ("GET", "HEAD"), ("POST",)


@dataclass(frozen=True, slots=True)
class CockpitPage:
    """A page of the admin at ``/admin/<route>``, named ``admin:<name>``.

    Only staff with a satisfied second factor and all of ``permissions`` reaches ``view``, by one of
    ``methods`` (none: by any). It is called with the request, the site and what the route captures:
    ``view(request, site, **captured)``. It is named by its path, because the tables that it may
    show are registered after the site is made. What else the page asks for, such as the chats
    within reach, is the view's own matter. A dict that it answers with is what ``template`` shows
    besides what is on every page.
    """

    route: str
    name: str
    view: str
    permissions: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    template: str = ""

    def bound_to(self, site: AdminSite) -> View:
        """The view as Django calls it."""

        def page(request: HttpRequest, **captured: object) -> HttpResponseBase:
            if not request.user.has_perms(self.permissions):
                raise PermissionDenied
            if self.methods and request.method not in self.methods:
                return HttpResponseNotAllowed(self.methods)
            answer: Any = import_string(self.view)(request, site, **captured)
            if isinstance(answer, dict):
                shown = {**site.each_context(request), **answer}
                answer = TemplateResponse(request, f"admin/{self.template}.html", shown)
            return cast("HttpResponseBase", answer)

        page.__name__ = self.name
        return page


PAGES: tuple[CockpitPage, ...] = (
    CockpitPage("start/", "start", f"{START}.start_page"),
    CockpitPage("start/live/", "start_live", f"{START}.live_part"),
    CockpitPage("start/client/", "start_client", f"{START}.client_part", methods=POST),
    CockpitPage("start/model/", "start_model", f"{START}.model_part", methods=POST),
    CockpitPage("start/checks/", "start_checks", f"{START}.checks_part"),
    CockpitPage("overview/state/", "overview_state", f"{OVERVIEW}.state_fragment", methods=READ),
    CockpitPage("overview/more/", "overview_more", f"{OVERVIEW}.more_fragment", methods=READ),
    CockpitPage("overview/seen/", "overview_seen", f"{OVERVIEW}.see_alert", methods=POST),
    CockpitPage("search/", "search", f"{SEARCH}.search_page", (), READ, "search"),
    CockpitPage("search/results/", "search_results", f"{SEARCH}.results", methods=READ),
    CockpitPage(
        "log/",
        "log",
        "frostproject.cockpit.log_page.log_page",
        ("agent.view_log",),
        READ,
    ),
    CockpitPage(
        "import/",
        "import",
        "frostproject.cockpit.import_page.import_page",
        ("agent.view_every_chat",),
        ("GET", "HEAD", "POST"),
        "imports/page",
    ),
    CockpitPage(
        "backups/<str:name>", "backup", "frostproject.cockpit.backups.download", methods=READ
    ),
    CockpitPage(
        "playground/", "playground", "frostproject.cockpit.playground.page", PLAY, ("GET",)
    ),
    CockpitPage(
        "playground/token/", "playground_token", f"{PLAYGROUND}.playground_token", PLAY, POST
    ),
    CockpitPage(
        "playground/owners/", "playground_owners", f"{PLAYGROUND}.playground_owners", PLAY, POST
    ),
    CockpitPage(
        "playground/erase/", "playground_erase", f"{PLAYGROUND}.playground_erase", PLAY, POST
    ),
    CockpitPage(
        "playground/run/", "playground_run", f"{PLAYGROUND}.playground_run", PLAY, ("GET",)
    ),
    CockpitPage(
        "spending/", "spending", f"{SPENDING}.spending_page", SEE_CHATS, READ, "spending/page"
    ),
    CockpitPage("spending/budget/", "spending_budget", f"{SPENDING}.keep_budget", SEE_CHATS, POST),
    CockpitPage("people/", "people", f"{PEOPLE}.people_page", SEE_PEOPLE, READ, "people/people"),
    CockpitPage(
        "people/receipts/<int:receipt>/",
        "erasure",
        f"{PEOPLE}.receipt_page",
        ERASE_PEOPLE,
        template="people/receipt",
    ),
    CockpitPage(
        "people/<path:person_id>/erase/",
        "erase_person",
        f"{PEOPLE}.erase_page",
        ERASE_PEOPLE,
        POST,
    ),
    CockpitPage(
        "people/<path:person_id>/",
        "person",
        f"{PEOPLE}.person_page",
        SEE_PEOPLE,
        READ,
        "people/person",
    ),
)


# The navigation: places grouped by what people do, in one table.


@dataclass(frozen=True, slots=True)
class NavigationPage:
    """A page that is not a table's: the name of its address, what it is called, and the permission
    that it takes ("" for none)."""

    url_name: str
    label: str | Promise
    permission: str = ""


Page = NavigationPage | str
"""A :class:`NavigationPage`, or a model as ``app.Model``."""


@dataclass(frozen=True, slots=True)
class Tabs:
    """Pages about one thing: one entry of the navigation, and tabs on each of them."""

    label: str | Promise
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Entries for one kind of work."""

    key: str
    label: str | Promise
    entries: tuple[Page | Tabs, ...]

    @property
    def pages(self) -> tuple[Page, ...]:
        return tuple(
            page
            for entry in self.entries
            for page in (entry.pages if isinstance(entry, Tabs) else (entry,))
        )


_FILES = ("agent.Sticker", "agent.MediaFile", "agent.KeptFile")
_TOOLS_FROM = ("tools.HttpTool", "tools.McpServer", "tools.Plugin", "tools.Secret")
_USERS = (
    "auth.User",
    "auth.Group",
    NavigationPage("admin:import", _("Import"), "agent.add_persona"),
    NavigationPage("admin:sign_in_sessions", _("Sign-in sessions")),
    NavigationPage("admin:second_factor", _("Second factor")),
)
_RAW_RECORDS = (
    NavigationPage("admin:log", _("Log"), "agent.view_log"),
    "agent.OperatorAct",
    "tools.ToolConfigChange",
    "agent.Step",
    "agent.Description",
    "agent.Digest",
    "onebot.ClientEvent",
    "tools.PluginValue",
)

#: What people do, most often first. A page whose address does not exist is left out, and so is
#: one that the user may not see. A model that stands nowhere is put at the end.
NAVIGATION: tuple[Group, ...] = (
    Group(
        "today",
        _("Today"),
        (
            Tabs(
                _("Overview"),
                (
                    NavigationPage("admin:index", _("Overview")),
                    "agent.Approval",
                    "agent.JoinRequest",
                    "agent.NoteProposal",
                ),
            ),
            NavigationPage("admin:start", _("First steps"), "onebot.change_bot"),
            NavigationPage("admin:playground", _("Playground"), "agent.use_playground"),
        ),
    ),
    Group(
        "chats",
        _("Chats"),
        (
            Tabs(_("Chats"), ("agent.ChatSession", "agent.Message")),
            Tabs(_("Runs"), ("agent.Run", "agent.ToolCall")),
            NavigationPage("admin:people", _("People"), "agent.view_message"),
            Tabs(_("Memory and files"), ("agent.Note", "agent.Reminder", *_FILES)),
            "onebot.Bot",
        ),
    ),
    Group(
        "models",
        _("Models and personas"),
        (
            "agent.ModelEndpoint",
            Tabs(_("Personas"), ("agent.Persona", "agent.PersonaChoice")),
            Tabs(
                _("Spending"),
                (
                    NavigationPage("admin:spending", _("Spending"), "agent.view_chatsession"),
                    "agent.Budget",
                    "agent.SpendSum",
                ),
            ),
        ),
    ),
    Group(
        "settings",
        _("Settings"),
        (
            Tabs(_("Manners"), ("agent.Manners", "agent.EventRule", "agent.RequestRule")),
            Tabs(_("Tools"), ("tools.ToolConfig", *_TOOLS_FROM)),
            Tabs(_("System and users"), ("agent.Installation", "agent.AlertRoute", *_USERS)),
            Tabs(_("Raw records"), _RAW_RECORDS),
        ),
    ),
)

User = PermissionsMixin | AnonymousUser
Entry = dict[str, Any]


def list_groups(user: User, apps: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The navigation for ``user``: ``apps`` as :meth:`AdminSite.get_app_list` gives them, put into
    the groups of :data:`NAVIGATION`, each in the same form as an app."""
    models = {model["model"]._meta.label: model for app in apps for model in app["models"]}
    found = [(group, list(_entries(user, group, models))) for group in NAVIGATION]
    found[-1][1].extend({**model} for model in models.values())  # what no group names
    return [
        {
            "name": group.label,
            "app_label": group.key,
            "app_url": "",
            "has_module_perms": True,
            "models": entries,
        }
        for group, entries in found
        if entries
    ]


def _entries(user: User, group: Group, models: dict[str, Any]) -> Iterator[Entry]:
    """The entries of a group that the user may see; the models among them are taken out of
    ``models``."""
    for entry in group.entries:
        if not isinstance(entry, Tabs):
            yield from _links(user, (entry,), models)
        elif links := list(_links(user, entry.pages, models)):
            name = entry.label if len(links) > 1 else links[0]["name"]
            yield {**links[0], "name": name, "tabs": links}


def _links(user: User, pages: Iterable[Page], models: dict[str, Any]) -> Iterator[Entry]:
    for page in pages:
        if isinstance(page, str):
            if model := models.pop(page, None):
                yield {**model, "name": name_table(model["model"]._meta)}
        elif not page.permission or user.has_perm(page.permission):
            try:
                address = reverse(page.url_name)
            except NoReverseMatch:
                continue
            yield {
                "name": page.label,
                "object_name": page.url_name.replace(":", "-"),
                "admin_url": address,
                "add_url": None,
                "view_only": True,
                "perms": {},
            }


def find_current(path: str, groups: Iterable[Entry]) -> tuple[str, Entry, Entry]:
    """Where a request for ``path`` is: the name of the group, the entry and the page, whose address
    is the longest that ``path`` begins with; the overview only where it is the page."""
    index = reverse("admin:index")
    near: list[tuple[str, Entry, Entry]] = [
        (str(group["name"]), entry, link)
        for group in groups
        for entry in group["models"]
        for link in entry.get("tabs", [entry])
        if (address := link.get("admin_url"))
        and (path == address or (address != index and path.startswith(address)))
    ]
    return max(near, key=lambda one: len(one[2]["admin_url"]), default=("", {}, {}))


#: By its path, as pages are: it knows tables.
LEADS_TO_START = "frostproject.cockpit.start.leads_to_start"


class CockpitSite(FrostAdminSite):
    """The one site of the admin: :data:`PAGES` beside the tables, in groups."""

    def get_urls(self) -> list[URLPattern | URLResolver]:
        own = [
            path(page.route, self.admin_view(page.bound_to(self)), name=page.name) for page in PAGES
        ]
        # No row here has an address on another site, and its list of sites is not installed.
        return own + [
            one for one in super().get_urls() if getattr(one, "name", "") != "view_on_site"
        ]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        found = import_string(f"{OVERVIEW}.overview_page")(request, self)
        context = {**self.each_context(request), **found, **(extra_context or {})}
        return TemplateResponse(request, "admin/index.html", context)

    def login(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """As everywhere; who can set up an installation that cannot answer yet is led to where that
        is done."""
        answer: HttpResponseBase = super().login(request, extra_context)
        if (
            (request.method == "POST" and answer.status_code == 302)
            and answer.headers["Location"] == reverse("admin:index")
            and not factors.has_second_factor(request.user)
            and import_string(LEADS_TO_START)(request.user)
        ):
            answer.headers["Location"] = reverse("admin:start")
        return answer

    def i18n_javascript(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's catalogue for scripts, and what this project adds to it."""
        packages = ["django.contrib.admin", "frostproject"]
        return cast("HttpResponse", JavaScriptCatalog.as_view(packages=packages)(request))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        groups = context["available_apps"]
        current: Any = SimpleLazyObject(lambda: find_current(request.path, groups))
        return {
            **context,
            "current_page": current,
            "here": SimpleLazyObject(lambda: current[0]),
            "tabs": SimpleLazyObject(lambda: current[1].get("tabs", [])),
            "rights": SimpleLazyObject(lambda: _rights(request)),
        }

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """The navigation, made once somebody looks at it: parts of pages have none. It is kept for
        each language and all the rights of somebody. With ``app_label`` the tables of that app, as
        in Django."""
        if app_label or not self.has_permission(request):
            return super().get_app_list(request, app_label)
        return SimpleLazyObject(lambda: self._find_groups(request))

    def _find_groups(self, request: HttpRequest) -> list[Entry]:
        known = get_language(), _rights(request)
        if (groups := _kept.get(known)) is None:
            # without Django's order by name, which has no say in groups
            groups = list_groups(request.user, self._build_app_dict(request).values())
            if len(_kept) >= MOST_KEPT:
                _kept.clear()
            _kept[known] = groups
        return groups


#: Navigations by language and rights. Few are in use; where there are many, all are made anew.
_kept: dict[tuple[str | None, str], list[Entry]] = {}
MOST_KEPT = 100


def _rights(request: HttpRequest) -> str:
    """The same for everybody who may do the same."""
    user: Any = request.user
    return "all" if user.is_superuser else ",".join(sorted(user.get_all_permissions()))
