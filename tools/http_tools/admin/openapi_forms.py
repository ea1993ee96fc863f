"""The forms of the import of OpenAPI documents, and how a document is carried from page to page."""

import base64
import binascii
import json
import zlib
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.fetch.urls import check_url
from tools.http_tools.openapi.document import MAX_BYTES, DocumentError, read_document
from tools.http_tools.openapi.operations import DocumentOutline, Operation

PACKED_LIMIT = 2_000_000
"""Characters of a packed document: what is posted has to stay below Django's
``DATA_UPLOAD_MAX_MEMORY_SIZE``."""
OPERATIONS_SHOWN = 500
"""Operations on one page, for the same reason: each that is ticked is a field."""
MAX_CHOSEN = 200
OWN_SERVER = "own"
SKIP, REPLACE = "skip", "replace"


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

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"])
        if url and (problems := check_url(url)):
            raise ValidationError(problems)
        return url

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        given = [name for name in ("url", "file", "text") if cleaned.get(name)]
        if not self.errors and len(given) != 1:
            raise ValidationError(gettext("Give the document in one of the three ways."))
        if (file := cleaned.get("file")) and file.size > MAX_BYTES:
            raise ValidationError(
                {
                    "file": gettext("The document is larger than %(limit)d MiB.")
                    % {"limit": MAX_BYTES // 2**20}
                }
            )
        return cleaned


class ChoiceForm(forms.Form):
    """What is to become of a document."""

    server = forms.ChoiceField(label=_("Server"), widget=forms.RadioSelect)
    own_server = forms.CharField(
        label=_("Another server"),
        required=False,
        max_length=1000,
        widget=forms.TextInput(
            attrs={"class": "vLargeTextField", "placeholder": "https://api.example.com/v1"}
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
    enabled = forms.BooleanField(
        label=_("Enable the tools at once"),
        required=False,
        help_text=_("Otherwise they can be tried out first, and enabled in the list."),
    )
    existing = forms.ChoiceField(
        label=_("Tools that are there already"),
        choices=((SKIP, _("leave as they are")), (REPLACE, _("replace"))),
        initial=SKIP,
        widget=forms.RadioSelect,
    )
    operations = forms.MultipleChoiceField(
        label=_("Operations"), error_messages={"required": _("Choose at least one operation.")}
    )

    def __init__(self, outline: DocumentOutline, data: Any = None) -> None:
        super().__init__(data)
        self.contents = outline
        servers: Any = self.fields["server"]
        servers.choices = [
            *((url, url) for url in outline.servers),
            (OWN_SERVER, _("another one:")),
        ]
        servers.initial = outline.servers[0] if outline.servers else OWN_SERVER
        operations: Any = self.fields["operations"]
        operations.choices = [(operation.key, operation.key) for operation in outline.operations]

    def sent(self, name: str) -> list[str]:
        """All that was sent under ``name``, valid or not."""
        return self.data.getlist(name) if isinstance(self.data, QueryDict) else []

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
            cleaned["server"] = str(cleaned.get("own_server") or "").strip().rstrip("/")
            if problems := check_url(cleaned["server"]):
                raise ValidationError({"own_server": problems})
        return cleaned


def filter_operations(operations: list[Operation], words: str) -> list[Operation]:
    """Those whose path, tags or summary hold all ``words``."""
    wanted = words.lower().split()[:10]
    found = []
    for operation in operations:
        known = (operation.key, operation.summary, *operation.tags)
        text = " ".join((*known, str(operation.parts.get("operationId") or ""))).lower()
        if all(word in text for word in wanted):
            found.append(operation)
    return found


def pack_document(document: dict[str, Any]) -> str:
    """``document`` for a hidden field, so that no page's work has to be kept between requests.
    Raises DocumentError."""
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    text = base64.b64encode(zlib.compress(data, 9)).decode()
    if len(data) > MAX_BYTES or len(text) > PACKED_LIMIT:
        raise DocumentError(
            gettext("The document is too large. Cut it down to the parts that you need.")
        )
    return text


def unpack_document(text: str) -> dict[str, Any]:
    """What :func:`pack_document` made, checked as any document is. Raises DocumentError."""
    try:
        reading = zlib.decompressobj()
        data = reading.decompress(base64.b64decode(text, validate=True), MAX_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise DocumentError(
            gettext("The document has been lost on the way. Begin again.")
        ) from error
    return read_document(data)
