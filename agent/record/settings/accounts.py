"""The rows of the bot accounts, as the transactions of one process see them."""

from agent.access.players import may_change_tools
from agent.domain.types import DEFAULT_ACCOUNT, AccountSettings, Outbox, is_playground


class AccountRows:
    """The settings of accounts, as new as the last :meth:`load`. Used by the database thread only.

    Without an ``outbox``, which knows the rows, every account has the settings of the first start.
    """

    def __init__(self, outbox: Outbox | None = None) -> None:
        self._outbox = outbox
        self._players: dict[str, bool] = {}
        """Of playgrounds met since then: whether their users may change tools."""

    def load(self) -> None:
        """Read the rows again."""
        if self._outbox is not None:
            self._outbox.reload()

    def forget_users(self) -> None:
        """Ask again what users of playgrounds may do, which is no setting."""
        self._players.clear()

    def find(self, account: str) -> AccountSettings:
        """Those of a playground without the rights of its senders, whom its user makes up, unless
        the user may change tools."""
        found = self._outbox.account_settings(account) if self._outbox else DEFAULT_ACCOUNT
        if not is_playground(account) or self._may_change_tools(account):
            return found
        return found.without_rights()

    def _may_change_tools(self, account: str) -> bool:
        if account not in self._players:
            self._players[account] = may_change_tools(account)
        return self._players[account]
