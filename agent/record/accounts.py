"""The rows of the bot accounts, as the transactions of one process see them."""

from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, Outbox


class AccountRows:
    """The settings of accounts, as new as the last :meth:`refresh`. Used by the database thread
    only.

    Without an ``outbox``, which knows the rows, every account has the settings of the first start.
    """

    def __init__(self, outbox: Outbox | None = None) -> None:
        self._outbox = outbox
        self._version: int | None = None

    def refresh(self, version: int) -> None:
        """Read the rows again, unless they were read at ``version`` of the settings already."""
        if version != self._version:
            if self._outbox is not None:
                self._outbox.reload()
            self._version = version

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self._version = None

    def find(self, account: str) -> AccountSettings:
        return self._outbox.account_settings(account) if self._outbox else DEFAULT_ACCOUNT
