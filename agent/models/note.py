"""Notes: what was said once and should count later, and proposals to change them."""

import hashlib
from collections.abc import Iterable
from typing import Any, ClassVar, TypeAlias

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent.domain.notes import TAG_COUNT, TAG_LIMIT, TEXT_LIMIT, note_audience
from agent.domain.states import NoteOwner, NoteSource, NoteVisibility
from agent.models.message import Message
from tools.live_rows import Tracked
from tools.text.search_terms import index_terms, key_term, normalize_text
from tools.text.storable import make_storable

#: Fields that follow from the others.
DERIVED = ("audience", "fingerprint", "words", "embedding_model", "signs", "embedding")


class Note(models.Model):
    """A fact with the one audience that may see it, and where it came from.

    ``audience`` is what every query asks for (:mod:`agent.domain.notes`), ``words`` is
    what search looks in; both follow from the other fields when the note is saved.
    """

    Owner: TypeAlias = NoteOwner

    Visibility: TypeAlias = NoteVisibility

    Source: TypeAlias = NoteSource

    platform = models.CharField(_("platform"), max_length=32, default="onebot")
    account = models.CharField(
        _("account"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("Empty, for everyone: the chats of every account."),
    )
    owner_kind = models.CharField(
        _("about"), max_length=16, choices=Owner.choices, default=Owner.PERSON
    )
    owner_id = models.CharField(
        _("about whom"),
        max_length=80,
        blank=True,
        default="",
        help_text=_("The id of the person or group, or the chat session."),
    )
    visibility = models.CharField(
        _("visible to"), max_length=16, choices=Visibility.choices, default=Visibility.CHAT
    )
    chat = models.CharField(
        _("chat"),
        max_length=80,
        blank=True,
        default="",
        help_text=_("Where it was said: group:ID or private:ID."),
    )
    source = models.CharField(
        _("source"), max_length=16, choices=Source.choices, default=Source.OPERATOR
    )
    said_by = models.CharField(
        _("said by"), max_length=64, blank=True, default="", help_text=_("A person's id.")
    )
    said_by_name = models.CharField(_("name"), max_length=200, blank=True, default="")
    message = models.ForeignKey(
        Message,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="notes",
        verbose_name=_("said in message"),
    )
    use_count = models.PositiveIntegerField(_("times used"), default=0)
    created_at = models.DateTimeField(_("recorded at"), default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    audience = models.CharField(max_length=400, editable=False)
    fingerprint = models.CharField(max_length=32, editable=False)
    tags = models.JSONField(
        _("tags"), default=list, blank=True, help_text=_('A list of short words: ["food", "wish"].')
    )
    text = models.TextField(_("text"), max_length=TEXT_LIMIT)
    # Large values last: SQLite walks over them to reach any column behind.
    words = models.TextField(editable=False, default="")
    embedding_model = models.CharField(max_length=200, blank=True, default="", editable=False)
    signs = models.BinaryField(default=bytes, editable=False)
    embedding = models.BinaryField(null=True, editable=False)

    tracked = Tracked(
        fields=(
            *("text", "tags", "visibility", "platform", "account", "chat"),
            *("owner_kind", "owner_id", "expires_at"),
        )
    )

    class Meta:
        verbose_name = _("memory note")
        verbose_name_plural = _("memory notes")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(visibility="everyone") | Q(source="operator"),
                name="only_the_operator_tells_everyone",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["audience", "-id"], name="note_audience"),
            models.Index(fields=["audience", "embedding_model", "-id"], name="note_meaning"),
            models.Index(fields=["audience", "fingerprint"], name="note_fingerprint"),
            models.Index(fields=["owner_kind", "owner_id", "-id"], name="note_owner"),
            models.Index(fields=["said_by", "-id"], name="note_said_by"),
            models.Index(fields=["source", "-id"], name="note_source"),
            models.Index(
                fields=["id"], name="note_without_vector", condition=Q(embedding_model="")
            ),
            models.Index(
                fields=["expires_at"], name="note_expiry", condition=Q(expires_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.text[:40]}"

    def save(
        self, *arguments: Any, update_fields: Iterable[str] | None = None, **options: Any
    ) -> None:
        """Store the note with everything that follows from its fields."""
        self.text, self.tags = make_storable(self.text), make_storable(self.tags)
        self.audience = self.own_audience
        self.words = " ".join([*self._key_terms(), *index_terms(" ".join([*self.tags, self.text]))])
        if self.fingerprint != (said := note_fingerprint(self.text)):
            self.fingerprint, self.embedding_model, self.signs, self.embedding = said, "", b"", None
        if update_fields is not None:
            update_fields = {*update_fields, *DERIVED}
        super().save(*arguments, update_fields=update_fields, **options)

    def clean(self) -> None:
        """Refuse notes that no viewer could see, or that the wrong viewers could. Raises
        ValidationError."""
        errors: dict[str, Any] = {}
        if not _are_tags(self.tags):
            errors["tags"] = _("Write a list of at most %(count)d short words.") % {
                "count": TAG_COUNT
            }
        if not self.account and self.visibility != self.Visibility.EVERYONE:
            errors["account"] = _("Only a note for everyone may be without an account.")
        if self.visibility == self.Visibility.PERSON and not (
            self.owner_kind == self.Owner.PERSON and self.owner_id
        ):
            errors["owner_id"] = _("A note for one person has to say who that is.")
        if self.visibility == self.Visibility.CHAT and not is_chat_key(self.chat):
            errors["chat"] = _("Write group:ID or private:ID.")
        if errors:
            raise ValidationError(errors)

    @property
    def own_audience(self) -> str:
        """The audience that follows from the other fields."""
        return note_audience(
            self.visibility,
            platform=self.platform,
            account=self.account,
            chat=self.chat,
            owner_id=self.owner_id,
        )

    def _key_terms(self) -> list[str]:
        people = {self.said_by} | (
            {self.owner_id} if self.owner_kind == self.Owner.PERSON else set()
        )
        return [
            key_term(self.audience),
            *(key_term("person", person) for person in sorted(people - {""})),
        ]


def note_fingerprint(text: str) -> str:
    """What two notes have in common that say the same in the same words."""
    return hashlib.blake2b(
        normalize_text(text).encode("utf-8", "replace"), digest_size=16
    ).hexdigest()


def is_chat_key(chat: str) -> bool:
    kind, _colon, peer = chat.partition(":")
    return kind in ("group", "private") and bool(peer)


def _are_tags(tags: Any) -> bool:
    fits = isinstance(tags, list) and len(tags) <= TAG_COUNT
    return fits and all(
        isinstance(tag, str) and len(tag.strip()) > 0 and len(tag) <= TAG_LIMIT for tag in tags
    )


class NoteProposal(models.Model):
    """Notes that say the same and could be one, or a note that has not been of use for long.

    Nothing happens until a person applies it. ``before`` keeps the previous state of the notes.
    """

    class ProposalKind(models.TextChoices):
        MERGE = "merge", _("make one of them")
        RETIRE = "retire", _("delete")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        APPLIED = "applied", _("applied")
        REJECTED = "rejected", _("rejected")
        STALE = "stale", _("the notes have changed since")

    kind = models.CharField(_("kind"), max_length=16, choices=ProposalKind.choices)
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.WAITING
    )
    model = models.CharField(_("model"), max_length=200, blank=True, default="")
    decided_by = models.CharField(_("decided by"), max_length=200, blank=True, default="")
    created_at = models.DateTimeField(_("recorded at"))
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    note_ids = models.JSONField(_("memory notes"), default=list)
    tags = models.JSONField(_("tags"), default=list, blank=True)
    text = models.TextField(
        _("text"),
        blank=True,
        default="",
        help_text=_("Of notes that become one: what it will say."),
    )
    before = models.JSONField(
        _("before"), default=list, help_text=_("The notes as they were when this was proposed.")
    )

    class Meta:
        verbose_name = _("proposal for memory notes")
        verbose_name_plural = _("proposals for memory notes")
        ordering = ("-id",)
        indexes: ClassVar = [models.Index(fields=["state", "-id"], name="proposal_state")]

    def __str__(self) -> str:
        return f"#{self.pk}"
