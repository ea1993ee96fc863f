"""The operator's pages that belong to no table: each has one line in :data:`PAGES`."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

View = Callable[..., HttpResponseBase]

START = "frostproject.cockpit.start"
PLAYGROUND = "onebot.playground.pages"
PEOPLE = "frostproject.cockpit.people"


@dataclass(frozen=True, slots=True)
class CockpitPage:
    """A page of the admin at ``/admin/<route>``, named ``admin:<name>``.

    Only staff with a satisfied second factor reaches ``view``, which is called with the request,
    the site and what the route captures: ``view(request, site, **captured)``. It is named by its
    path, because the tables that it may show are registered after the site is made. What else the
    page asks for, such as permissions and the chats within reach, is the view's own matter.
    """

    route: str
    name: str
    view: str

    def bound_to(self, site: AdminSite) -> View:
        """The view as Django calls it."""

        def page(request: HttpRequest, **captured: object) -> HttpResponseBase:
            view: View = import_string(self.view)
            return view(request, site, **captured)

        page.__name__ = self.name
        return page


PAGES: tuple[CockpitPage, ...] = (
    CockpitPage("start/", "start", f"{START}.start_page"),
    CockpitPage("start/live/", "start_live", f"{START}.live_part"),
    CockpitPage("start/client/", "start_client", f"{START}.client_part"),
    CockpitPage("start/model/", "start_model", f"{START}.model_part"),
    CockpitPage("start/checks/", "start_checks", f"{START}.checks_part"),
    CockpitPage(
        "overview/state/", "overview_state", "frostproject.cockpit.dashboard.state_fragment"
    ),
    CockpitPage("log/", "log", "frostproject.cockpit.log_page.log_page"),
    CockpitPage("playground/", "playground", "frostproject.cockpit.playground.page"),
    CockpitPage("playground/token/", "playground_token", f"{PLAYGROUND}.playground_token"),
    CockpitPage("playground/owners/", "playground_owners", f"{PLAYGROUND}.playground_owners"),
    CockpitPage("playground/erase/", "playground_erase", f"{PLAYGROUND}.playground_erase"),
    CockpitPage("playground/run/", "playground_run", f"{PLAYGROUND}.playground_run"),
    CockpitPage("people/", "people", f"{PEOPLE}.people_page"),
    CockpitPage("people/receipts/<int:receipt>/", "erasure", f"{PEOPLE}.receipt_page"),
    CockpitPage("people/<path:person_id>/erase/", "erase_person", f"{PEOPLE}.erase_page"),
    CockpitPage("people/<path:person_id>/", "person", f"{PEOPLE}.person_page"),
)
