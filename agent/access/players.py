"""Whose playground gives its senders the rights of owners, listed people and administrators.

There one user speaks as whomever he likes. So what depends on who speaks is no more there than what
he may do himself: who may change tools could allow them to everybody.
"""

from typing import Any

from django.contrib.auth.models import User

from agent.domain.types import is_playground, playground_owner

CHANGE_TOOLS = "tools.change_toolconfig"


def may_change_tools(account: str) -> bool:
    """Whether the user of the playground ``account`` may change tools now."""
    user = User.objects.filter(pk=playground_owner(account)).first()
    return user is not None and user.has_perm(CHANGE_TOOLS)


def may_decide(user: Any, account: str) -> bool:
    """Whether ``user`` may decide over calls of ``account`` that wait for approval, as far as it is
    a playground: there he would decide over what he asked for himself."""
    return not is_playground(account) or user.has_perm(CHANGE_TOOLS)
