"""Where the migration ``0003_sealed_arguments`` looks for :mod:`tools.secrets.encryption`:
migrations are never edited."""

from tools.secrets.encryption import encrypt as seal

__all__ = ["seal"]
