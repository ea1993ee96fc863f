"""Sessions whose keys the database does not know: it holds digests of them.

Named as the module of a session engine has to be. Whoever reads the table, or a copy of it, finds
nothing there that a browser could send as its cookie.
"""

import hashlib
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.utils import timezone

#: As long as the column is; of SHA-256, that is 160 bits.
DIGEST_LENGTH = 40


def digest_key(session_key: str | None) -> str:
    """What stands in the table for a key."""
    return hashlib.sha256((session_key or "").encode()).hexdigest()[:DIGEST_LENGTH]


class SessionStore(db.SessionStore):
    """Django's sessions in the database; ``session_key`` is what the cookie holds."""

    def exists(self, session_key: str) -> bool:
        return super().exists(digest_key(session_key))

    async def aexists(self, session_key: str) -> bool:
        return await super().aexists(digest_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        row = super().create_model_instance(data)
        row.session_key = digest_key(row.session_key)
        return row

    async def acreate_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        row = await super().acreate_model_instance(data)
        row.session_key = digest_key(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            super().delete(digest_key(key))

    async def adelete(self, session_key: str | None = None) -> None:
        if key := session_key or self.session_key:
            await super().adelete(digest_key(key))

    def _get_session_from_db(self) -> AbstractBaseSession | None:
        rows = self.model.objects.filter(expire_date__gt=timezone.now())
        found: AbstractBaseSession | None = rows.filter(
            session_key=digest_key(self.session_key)
        ).first()
        if found is None:
            self._session_key = None  # a key that was made elsewhere is never taken over
        return found

    async def _aget_session_from_db(self) -> AbstractBaseSession | None:
        return await sync_to_async(self._get_session_from_db)()
