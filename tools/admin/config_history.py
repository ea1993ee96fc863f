"""What was changed in a tool's settings, by whom, and the way back."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from tools.models import ToolConfig, ToolConfigChange

SETTINGS = (
    "enabled",
    "visibility",
    "pinned",
    "scope",
    "allowed",
    "allowed_ids",
    "looked_at",
    "requires_approval",
    "calls_per_minute_person",
    "calls_per_minute_chat",
    "mock_enabled",
    "mock_value",
    "description",
    "parameter_descriptions",
    "timeout_seconds",
)
"""The fields that people decide on, and that a change is about."""


def snapshot_settings(config: ToolConfig) -> dict[str, Any]:
    """The operator's settings of ``config`` as JSON, for :func:`record_change` to compare with."""
    return {field: getattr(config, field) for field in SETTINGS}


def record_change(
    config: ToolConfig, author: User | None, before: dict[str, Any]
) -> ToolConfigChange | None:
    """Put on record what differs from ``before``, a :func:`snapshot_settings`; None, and nothing
    recorded, where nothing does.

    ``author`` is None for the program itself. Call it after ``config`` was saved, in
    the same transaction.
    """
    now = snapshot_settings(config)
    changed = [field for field in SETTINGS if before[field] != now[field]]
    if not changed:
        return None
    return ToolConfigChange.objects.create(
        config=config,
        author=author,
        before={field: before[field] for field in changed},
        after={field: now[field] for field in changed},
    )


def record_look(pk: int, fingerprint: str, author: User | None) -> bool:
    """Put on record that ``author`` has looked at what the tool declares; False, and nothing done,
    where that is something else by now than what had ``fingerprint``, or no longer to be looked at.
    """
    with transaction.atomic():
        config = (
            ToolConfig.objects.select_for_update().filter(pk=pk).exclude(fingerprint="").first()
        )
        if config is None or config.fingerprint != fingerprint:
            return False
        before = snapshot_settings(config)
        config.looked_at, config.looked_declaration = config.fingerprint, config.declaration
        config.save(update_fields=["looked_at", "looked_declaration", "updated_at"])
        record_change(config, author, before)
        return True


def revert_change(change: ToolConfigChange, author: User | None) -> ToolConfigChange | None:
    """Give the fields of ``change`` back what they held before it, and record that as a change of
    its own.

    Later changes of other fields stay. None where the fields hold those values already.
    Raises :class:`django.core.exceptions.ValidationError` when an old value is no longer
    valid, and then nothing is changed.
    """
    with transaction.atomic():
        config = ToolConfig.objects.select_for_update().get(pk=change.config_id)
        before = snapshot_settings(config)
        for field in change.before.keys() & set(SETTINGS):
            setattr(config, field, change.before[field])
        if config.looked_at != before["looked_at"]:
            config.looked_declaration = None  # only the newest is kept
        config.full_clean()
        config.save()
        return record_change(config, author, before)
