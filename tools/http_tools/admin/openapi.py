"""The page that makes HTTP tools of an OpenAPI document: one form, with a preview of what it would
make. Nothing is kept between requests but what the page carries."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from tools.admin.record_pages import author_of, require
from tools.admin.settings_page import SettingsAdmin
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import run_with_fetcher
from tools.fetch.request import FetchError, FetchRequest, check_url
from tools.http_tools.admin.secrets import build_secret_field
from tools.http_tools.models import FROM_ROWS
from tools.http_tools.openapi.document import MAX_BYTES, DocumentError, read_document
from tools.http_tools.openapi.drafts import (
    DocumentOutline,
    Operation,
    SecretWanted,
    ToolDraft,
    draft_tool,
    make_unique,
    outline_document,
    propose_tool_name,
)
from tools.http_tools.validation import (
    GRACE_SECONDS,
    PROVIDER,
    ValidationContext,
    check_hosts,
    check_http_tool,
)
from tools.models import HttpTool, Secret, ToolConfig
from tools.models.row_history import record_changes
from tools.models.tool_config import ApprovalMode
from tools.secrets.hosts import SecretHosts

PACKED_SALT = "tools.http_tools.openapi"
PACKED_LIMIT = 2_000_000
"""Characters of a packed document: what is posted has to stay below Django's
``DATA_UPLOAD_MAX_MEMORY_SIZE``."""
MAX_CHOSEN = 200
"""Operations that the page shows, and that are imported at once: each is drafted and checked."""
FETCH_SECONDS = 30.0
OWN_SERVER = "own"
SKIP, REPLACE = "skip", "replace"
#: Methods that replace or delete what is there.
CHANGING = frozenset({HttpTool.Method.PUT, HttpTool.Method.PATCH, HttpTool.Method.DELETE})


# --- The form -------------------------------------------------------------------


class SourceForm(forms.Form):
    """Where the document comes from: exactly one of three places."""

    url = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(
            attrs={
                "class": "vLargeTextField",
                "placeholder": "https://api.example.com/openapi.json",
            }
        ),
        help_text=_("The document is fetched from there."),
    )
    file = forms.FileField(
        label=_("File"), required=False, help_text=_("A .json, .yaml or .yml file, at most 8 MiB.")
    )
    text = forms.CharField(
        label=_("Text"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 8, "class": "vLargeTextField template", "spellcheck": "false"}
        ),
        help_text=_("The document itself. What is larger than 2 MiB has to be uploaded as a file."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and sum(map(bool, cleaned.values())) != 1:
            raise ValidationError(gettext("Give the document in one of the three ways."))
        if (url := cleaned.get("url")) and (problems := check_url(url)):
            raise ValidationError({"url": problems})
        return cleaned

    def read(self) -> dict[str, Any]:
        """The document of a valid form. Raises :class:`DocumentError`."""
        if url := self.cleaned_data["url"]:
            request = FetchRequest(url, max_bytes=MAX_BYTES, seconds=FETCH_SECONDS)
            try:
                fetched = run_with_fetcher("tools", lambda fetcher: fetcher.download(request))
            except FetchError as error:
                words = gettext("The document could not be fetched: %(error)s")
                raise DocumentError(words % {"error": error}) from error
            return read_document(fetched.body)
        if file := self.cleaned_data["file"]:
            return read_document(file.read(MAX_BYTES + 1))
        return read_document(str(self.cleaned_data["text"]))


class ChoiceForm(forms.Form):
    """What is to become of a document."""

    server = forms.ChoiceField(label=_("Server"), widget=forms.RadioSelect)
    own_server = forms.CharField(
        label=_("Another server"),
        required=False,
        max_length=1000,
        widget=forms.TextInput(
            attrs={
                "class": "vLargeTextField",
                "placeholder": "https://api.example.com/v1",
                "aria-label": _("Another server"),
            }
        ),
    )
    name_prefix = forms.CharField(
        label=_("Prefix of the names"),
        required=False,
        max_length=30,
        validators=[RegexValidator(r"^[A-Za-z0-9_-]*\Z", _("Letters, digits, _ and - only."))],
        widget=forms.TextInput(attrs={"placeholder": "weather_"}),
        help_text=_(
            "Stands before the names of the tools and of their secrets, so that it is seen where"
            " they come from."
        ),
    )
    existing = forms.ChoiceField(
        label=_("Tools that are there already"),
        choices=((SKIP, _("leave as they are")), (REPLACE, _("replace"))),
        initial=SKIP,
        widget=forms.RadioSelect,
    )
    enabled = forms.BooleanField(
        label=_("Enable the tools at once"),
        required=False,
        help_text=_("Otherwise they can be tried out first, and enabled in the list."),
    )
    operations = forms.MultipleChoiceField(
        label=_("Operations"), error_messages={"required": _("Choose at least one operation.")}
    )

    def __init__(self, outline: DocumentOutline, data: Any = None) -> None:
        super().__init__(data)
        own = (OWN_SERVER, _("another one:"))
        servers: Any = self.fields["server"]
        servers.choices = [*((url, url) for url in outline.servers), own]
        servers.initial = next(iter(outline.servers), OWN_SERVER)
        operations: Any = self.fields["operations"]
        operations.choices = [(operation.key, operation.key) for operation in outline.operations]

    @property
    def ticked(self) -> list[str]:
        """The operations that were sent, valid or not."""
        return self.data.getlist("operations") if isinstance(self.data, QueryDict) else []

    @property
    def choice(self) -> dict[str, Any]:
        """What is known of the choice so far; ``server`` is "" where it is not."""
        known = {"server": self["server"].initial, "name_prefix": "", "existing": SKIP}
        known |= {"enabled": False} | (self.cleaned_data if self.is_bound else {})
        return known | ({"server": ""} if known["server"] == OWN_SERVER else {})

    def clean_operations(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["operations"]
        if len(chosen) > MAX_CHOSEN:
            raise ValidationError(
                gettext("At most %(limit)d operations at once.") % {"limit": MAX_CHOSEN}
            )
        return chosen

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("server") == OWN_SERVER:
            own = str(cleaned.get("own_server") or "").strip().rstrip("/")
            if problems := check_url(own):
                raise ValidationError({"own_server": problems})
            cleaned["server"] = own
        return cleaned


class SecretsForm(forms.Form):
    """An input for each secret that is missing, or can no longer be read. What is left empty is
    entered later."""

    def __init__(
        self, wanted: Sequence[SecretWanted], planned: Sequence["PlannedTool"], data: Any = None
    ) -> None:
        super().__init__(data, prefix="secret")
        self.wanted = wanted
        for secret in wanted:
            hosts = find_wanted_hosts(planned, secret.name).words
            hosts_line = gettext("Sent to: %(hosts)s.") % {"hosts": hosts}
            self.fields[secret.name] = build_secret_field(
                label=secret.name, required=False, help_text=f"{secret.hint}. {hosts_line}"
            )

    def values(self) -> dict[str, str]:
        """What was entered, by name, as requests carry it: a user and a password go in Base64
        (RFC 7617)."""
        entered = {one: value for one in self.wanted if (value := self.cleaned_data.get(one.name))}
        return {
            secret.name: base64.b64encode(value.encode()).decode() if secret.is_pair else value
            for secret, value in entered.items()
        }


def pack_document(document: dict[str, Any]) -> str:
    """``document`` for a hidden field, so that no page's work has to be kept between requests: it
    is signed, and so comes back as it was checked. Raises DocumentError."""
    text = signing.dumps(document, salt=PACKED_SALT, compress=True)
    if len(text) > PACKED_LIMIT:
        raise DocumentError(
            gettext("The document is too large. Cut it down to the parts that you need.")
        )
    return text


def unpack_document(text: str) -> dict[str, Any]:
    """What :func:`pack_document` made. Raises DocumentError."""
    try:
        return dict(signing.loads(text, salt=PACKED_SALT))
    except signing.BadSignature as error:
        raise DocumentError(
            gettext("The document has been lost on the way. Begin again.")
        ) from error


def filter_operations(operations: Iterable[Operation], words: str) -> list[Operation]:
    """Those whose path, tags or summary hold all ``words``."""

    def text(one: Operation) -> str:
        named = str(one.parts.get("operationId") or "")
        return " ".join((one.key, one.summary, *one.tags, named)).lower()

    wanted = words.lower().split()[:10]
    return [one for one in operations if all(word in text(one) for word in wanted)]


# --- What it would make ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedTool:
    """One operation. ``row`` is what would be saved; ``problem`` is the reason why it cannot be."""

    draft: ToolDraft
    row: HttpTool
    problem: str
    is_made: bool
    """Whether it is made: it can be, and no row of its name is to be left as it is."""

    @property
    def is_there(self) -> bool:
        return self.row.pk is not None

    @property
    def asks_owner(self) -> bool:
        """Whether its calls wait for an owner from the start: a new one that may change or delete
        what is there."""
        return self.is_made and not self.is_there and self.row.method in CHANGING


def plan_tools(
    document: dict[str, Any],
    names: Mapping[str, str],
    operations: Iterable[Operation],
    choice: Mapping[str, Any],
) -> list[PlannedTool]:
    """A plan for each of ``operations``; ``names`` are those of the tools, by the operations'
    keys, and ``choice`` is that of a ``ChoiceForm``."""
    existing = {row.name: row for row in HttpTool.objects.filter(name__in=names.values())}
    context = ValidationContext(allow=AllowList.parse(settings.FETCH_ALLOW, "tools"))
    server, prefix = choice["server"], choice["name_prefix"]
    planned = []
    for operation in operations:
        name = names[operation.key]
        draft = draft_tool(document, operation, name=name, server=server, prefix=prefix)
        row = existing.get(name) or HttpTool(enabled=False)
        for field, value in {**draft.values, "enabled": choice["enabled"] or row.enabled}.items():
            setattr(row, field, value)
        if not (problem := draft.problem) and server:  # secrets may still be missing
            found = check_http_tool(row.to_settings(), context)
            problem = " ".join(line for lines in found.values() for line in lines)
            problem = gettext("The URL is too long.") if len(row.url) > 2000 else problem
        is_left = row.pk is not None and choice["existing"] != REPLACE
        planned.append(PlannedTool(draft, row, problem, is_made=not problem and not is_left))
    return planned


def propose_tool_names(outline: DocumentOutline, prefix: str) -> dict[str, str]:
    """A name for each operation, by its key. It does not depend on the selection, so that a second
    import finds the rows of the first one."""
    described = ToolConfig.objects.values_list("name", "declaration__provider_type")
    taken = {name for name, provider_type in described if provider_type not in FROM_ROWS}
    names: dict[str, str] = {}
    for operation in outline.operations:
        names[operation.key] = make_unique(propose_tool_name(operation, prefix), taken)
        taken.add(names[operation.key])
    return names


def find_wanted_secrets(planned: Iterable[PlannedTool]) -> tuple[list[SecretWanted], list[str]]:
    """The secrets that the tools to be made name: those that are missing or can no longer be read,
    and the others."""
    wanted = {
        secret.name: secret for plan in planned if plan.is_made for secret in plan.draft.secrets
    }
    there = {secret.name for secret in Secret.objects.filter(name__in=wanted) if secret.is_readable}
    return [secret for name, secret in wanted.items() if name not in there], sorted(there)


def find_wanted_hosts(planned: Iterable[PlannedTool], name: str) -> SecretHosts:
    """Where the tools to be made would send the secret of that name."""
    return SecretHosts.of_urls(
        plan.row.url
        for plan in planned
        if plan.is_made and name in {one.name for one in plan.draft.secrets}
    )


def check_secret_hosts(planned: Iterable[PlannedTool], names: Iterable[str]) -> list[str]:
    """Why tools to be made would not work with the secrets of these names as they are: a translated
    line each."""
    hosts = {name: known for name, known in Secret.known_hosts().items() if name in names}
    made = [plan.row.to_settings() for plan in planned if plan.is_made]
    return list(dict.fromkeys(line for row in made for line in check_hosts(row, hosts)))


@transaction.atomic
def save_plan(planned: Sequence[PlannedTool], secrets: Mapping[str, str]) -> list[Secret]:
    """Save the rows that are to be made, and ``secrets`` by name, each for the hosts of these rows
    alone; these are returned."""
    kept = []
    for name, value in secrets.items():
        secret = Secret.objects.filter(name=name).first() or Secret(name=name)
        secret.value, secret.hosts = value, str(find_wanted_hosts(planned, name))
        secret.save()
        kept.append(secret)
    for plan in planned:
        if plan.asks_owner:  # as its first start would make its settings, but for the approval
            settings_of_tool = {
                "provider_name": PROVIDER,
                "declaration": {"provider_type": PROVIDER},
                "timeout_seconds": plan.row.timeout_seconds + GRACE_SECONDS,
                "requires_approval": ApprovalMode.ALWAYS,
            }
            ToolConfig.objects.get_or_create(name=plan.row.name, defaults=settings_of_tool)
        if plan.is_made:
            plan.row.save()
    return kept


# --- The page -------------------------------------------------------------------


class ImportPages(SettingsAdmin):
    """The import as a page of the admin of HTTP tools."""

    list_pages = ("import",)

    @method_decorator(sensitive_post_parameters())
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Read a document, select operations, preview the tools, create them."""
        require(self.has_add_permission(request))
        is_read = request.POST.get("step") == "read"
        source = SourceForm(request.POST, request.FILES) if is_read else SourceForm()
        try:
            if not is_read and "document" in request.POST:
                packed, url = request.POST["document"], request.POST.get("source_url", "")[:2000]
                return self._preview(request, unpack_document(packed), packed, url)
            if is_read and source.is_valid():
                document, url = source.read(), source.cleaned_data["url"]
                return self._preview(request, document, pack_document(document), url)
        except DocumentError as problem:
            return self._import_page(request, source=source, problem=problem)
        return self._import_page(request, source=source)

    def _preview(
        self, request: HttpRequest, document: dict[str, Any], packed: str, url: str
    ) -> HttpResponse:
        """The document with what its operations would become; or their making."""
        outline = outline_document(document, url)
        is_made = request.POST.get("step") == "make" and "again" not in request.POST
        form = ChoiceForm(outline, request.POST if "document" in request.POST else None)
        is_valid = form.is_valid()
        choice = form.choice
        if not self.has_change_permission(request):
            choice |= {"existing": SKIP}
        find, ticked = request.POST.get("find", "")[:200], set(form.ticked)
        rest = filter_operations(outline.operations, find)
        shown = [one for one in outline.operations if one.key in ticked]
        shown = [*shown, *(one for one in rest if one.key not in ticked)][:MAX_CHOSEN]
        names = propose_tool_names(outline, choice["name_prefix"])
        planned = plan_tools(document, names, shown, choice)
        chosen = [plan for plan in planned if plan.draft.operation.key in ticked]
        missing, there = find_wanted_secrets(chosen or planned)
        may_enter = request.user.has_perms(("tools.add_secret", "tools.change_secret"))
        secrets = SecretsForm(
            missing if may_enter else (), chosen or planned, request.POST if is_made else None
        )
        if is_made and is_valid and secrets.is_valid():
            return self._make(request, chosen, secrets.values())
        return self._import_page(
            request,
            form=form,
            is_checked="again" not in request.POST,
            outline=outline,
            packed=packed,
            source_url=url,
            find=find,
            ticked=ticked,
            planned=planned,
            hidden_count=len(outline.operations) - len(shown),
            secrets=secrets,
            kept_secrets=there,
            refusals=check_secret_hosts(chosen or planned, there),
            missing_secrets=() if may_enter else missing,
        )

    def _make(
        self, request: HttpRequest, planned: list[PlannedTool], values: dict[str, str]
    ) -> HttpResponse:
        made = [plan.row for plan in planned if plan.is_made and not plan.is_there]
        replaced = [plan.row for plan in planned if plan.is_made and plan.is_there]
        entered = Secret.objects.filter(name__in=values)
        with record_changes(author_of(request), *replaced, *entered):
            secrets = save_plan(planned, values)
        for row in made:
            self.log_addition(request, row, gettext("Imported from an OpenAPI document."))
        for row in replaced:
            self.log_change(request, row, gettext("Replaced from an OpenAPI document."))
        for secret in secrets:
            self.log_change(
                request, secret, gettext("Entered during the import of an OpenAPI document.")
            )
        counts = {"made": len(made), "replaced": len(replaced)}
        counts["left"] = len(planned) - len(made) - len(replaced)
        words = gettext("Tools made: %(made)d; replaced: %(replaced)d; left out: %(left)d.")
        level = messages.SUCCESS if made or replaced else messages.WARNING
        self.message_user(request, words % counts, level)
        return redirect("admin:tools_httptool_changelist")

    def _import_page(self, request: HttpRequest, **page: Any) -> HttpResponse:
        return self.show_page(request, "import", gettext("Import from OpenAPI"), **page)
