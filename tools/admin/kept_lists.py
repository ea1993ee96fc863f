"""Lists as each reader wants them: the columns that are chosen, and conditions that are kept under
a name."""

from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.views.main import ALL_VAR, ERROR_FLAG, PAGE_VAR, SEARCH_VAR
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext

from tools.admin.record_pages import Addresses, RecordAdmin, by_post, require
from tools.models import KeptList
from tools.text.readable import escape_direction_chars

#: Names that one reader can keep for a list, and their signs; signs of the conditions of one.
MOST_KEPT, NAME_CHARS, QUERY_CHARS = 20, 64, 1_000
#: Where in a list somebody is, which is no condition.
PLACES = frozenset({ALL_VAR, ERROR_FLAG, PAGE_VAR, "id__lt"})


class KeptListAdmin(RecordAdmin):
    """Pages of records whose list has columns to choose."""

    addresses: ClassVar[Addresses] = (("keep", "keep/"),)
    #: Columns that can be chosen, in the order in which they are shown; those of ``list_display``
    #: are, until somebody chooses.
    choosable: ClassVar[tuple[str, ...]] = ()
    #: Columns that nobody does without.
    always: ClassVar[tuple[str, ...]] = ()

    def load_kept(self, request: HttpRequest) -> dict[str, str]:
        """What the reader keeps for this list, by name. One query for a request."""
        page: Any = request
        if not hasattr(page, "kept_lists"):
            rows = self._kept_rows(request).order_by("name").values_list("name", "query")
            page.kept_lists = dict(rows)
        return dict(page.kept_lists)

    def _kept_rows(self, request: HttpRequest) -> Any:
        return KeptList.objects.filter(user=request.user.pk, page=self.opts.label_lower)

    def offered_columns(self, request: HttpRequest) -> tuple[str, ...]:
        """Of the columns, those that the reader may see."""
        return self.choosable

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        chosen = self.load_kept(request).get("", ",".join(map(str, self.list_display))).split(",")
        return (*self.always, *(name for name in self.offered_columns(request) if name in chosen))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = self.get_list_display(request)
        columns = [
            (name, getattr(self, name).short_description, name in shown)
            for name in self.offered_columns(request)
        ]
        kept = [(name, query) for name, query in self.load_kept(request).items() if name]
        page = {"kept": kept, "choosable": columns, "conditions_kept": self._clean(request.GET)}
        return super().changelist_view(request, page | (extra_context or {}))

    def _clean(self, query: QueryDict) -> str:
        """The conditions of an address that the list knows."""
        clean = QueryDict(mutable=True)
        for name, value in query.items():
            is_known = name == SEARCH_VAR or self.lookup_allowed(name, str(value))
            if value and is_known and name not in PLACES:
                clean[name] = str(value)
        return clean.urlencode()

    @by_post
    def keep_view(self, request: HttpRequest) -> HttpResponse:
        """Keep the columns, or the conditions under a name, or no longer; then show the list."""
        require(self.has_view_permission(request))
        rows, query = self._kept_rows(request), self._clean(QueryDict(request.POST.get("query")))
        if "columns" in request.POST:
            wanted = request.POST.getlist("column")
            self._keep(request, "", ",".join(name for name in self.choosable if name in wanted))
        elif "forget" in request.POST:
            rows.filter(name=_name_of(request, "forget")).delete()
        elif problem := self._find_problem(request, query):
            messages.error(request, problem)
        else:
            self._keep(request, _name_of(request), query)
            messages.success(request, gettext("Kept under “%s”.") % _name_of(request))
        return redirect(f"../?{query}")

    def _find_problem(self, request: HttpRequest, query: str) -> str:
        """Why the conditions cannot be kept; "" where they can."""
        name, kept = _name_of(request), self.load_kept(request)
        if not name or len(name) > NAME_CHARS:
            return gettext("Give it a name of at most %d signs.") % NAME_CHARS
        if not query or len(query) > QUERY_CHARS:
            return gettext("There is no condition in force that could be kept, or too many are.")
        is_full = len([one for one in kept if one]) >= MOST_KEPT and name not in kept
        return gettext("You keep %d already: forget one first.") % MOST_KEPT if is_full else ""

    def _keep(self, request: HttpRequest, name: str, query: str) -> None:
        """Under ``name``, in place of what is kept under it."""
        self._kept_rows(request).update_or_create(
            name=name,
            defaults={"query": query},
            create_defaults={
                "user_id": request.user.pk,
                "page": self.opts.label_lower,
                "query": query,
            },
        )


def _name_of(request: HttpRequest, field: str = "name") -> str:
    """The name that was given, with nothing unseen in it."""
    return escape_direction_chars(" ".join(request.POST.get(field, "").replace("\0", "").split()))
