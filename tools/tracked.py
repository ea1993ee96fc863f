"""Which fields of a model are on record when operators change them, and how much of each. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Shown = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Tracked:
    """What is on record of a model's rows: its attribute ``tracked``. See
    :mod:`tools.admin.config_history`.

    ``fields`` are kept as they are, and taken back one by one. ``sealed`` are fields that may hold
    keys: kept under seal and shown by their function. They are kept and taken back together, so
    that no old key goes to a new place. Of ``masked``, each an attribute with a label, only what
    its function shows is kept: it cannot be taken back.
    """

    fields: tuple[str, ...] = ()
    sealed: Mapping[str, Shown] = field(default_factory=dict)
    masked: Mapping[str, tuple[Any, Shown]] = field(default_factory=dict)
