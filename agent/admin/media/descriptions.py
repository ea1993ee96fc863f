"""Pages of the descriptions of media, which are cached: view them, and delete them to have them
made again."""

from collections.abc import Iterable
from typing import ClassVar

from django.contrib import admin
from django.db.models import Model, Q
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from agent.admin.chats.thumbnails import render_thumbnail
from agent.models import Description, KeptFile
from agent.pages.own_chats import OwnMediaAdmin, own_uses
from tools.admin.filters import RecordedSince
from tools.admin.record_pages import (
    RecordAdmin,
    clamp_text,
    format_moment,
    parse_row_number,
    record_link,
)
from tools.text.readable import text_block

#: Uses of a description that its page looks at.
USES = 20


@admin.register(Description)
class DescriptionAdmin(OwnMediaAdmin, RecordAdmin):
    media_field = "description"
    actions = ("delete_selected",)  # type: ignore[assignment] # the base has none
    list_display = ("described_at", "excerpt", "model", "asked")
    list_filter = (RecordedSince,)
    list_excerpts = ("text",)
    text_fields = ("text",)
    search_help_text: ClassVar = _(
        "The number of a description or a content hash; words are found among the newest "
        "100,000 descriptions."
    )
    fields = (
        "words",
        "pictures",
        "model",
        "created_at",
        "asked",
        "files",
        "content",
        "tokens",
        "messages",
    )

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("agent.delete_description")

    def exact_matches(self, term: str) -> Iterable[Q]:
        yield Q(pk=parse_row_number(term))
        yield Q(content=term.lower())

    @admin.display(description=_("described at"))
    def described_at(self, description: Description) -> str:
        return format_moment(description.created_at)

    @admin.display(description=_("description"))
    def excerpt(self, description: Description) -> str:
        return clamp_text(getattr(description, "text_excerpt", ""))

    @admin.display(description=_("description"))
    def words(self, description: Description) -> str:
        return text_block(description.text)

    @admin.display(description=_("prompt"))
    def asked(self, description: Description) -> str:
        kind = description.prompt_kind
        return kind if len(kind) < 64 else str(_("words of the sender"))

    @admin.display(description=_("tokens"))
    def tokens(self, description: Description) -> str:
        return f"{description.input_tokens:,} + {description.output_tokens:,}"

    @admin.display(description=_("copies"))
    def pictures(self, description: Description) -> str:
        newest = own_uses(description).values_list("message_id", flat=True).first() or 0
        kept = KeptFile.objects.filter(
            uses__description=description, uses__message_id=newest
        ).order_by("uses__position")
        shown = format_html_join(" ", "{}", ((render_thumbnail(one),) for one in kept[:USES]))
        return format_html('<div class="thumbnails">{}</div>', shown) if shown else "-"

    @admin.display(description=_("messages"))
    def messages(self, description: Description) -> str:
        pks = sorted(set(own_uses(description).values_list("message_id", flat=True)[:USES]))
        return (
            format_html_join(
                " ", "{}", ((record_link("agent_message", pk, f"#{pk}"),) for pk in pks)
            )
            or "-"
        )
