"""The commands for owners that choose something: what they change, and what is said then. They run
in the database thread; each change is on record with its author and counts from the next message
on."""

import re
from collections.abc import Sequence

from django.utils.translation import gettext

from agent.commands.call import CommandCall, join_words, tell_usage
from agent.domain.budgets import TOKENS, SpendKind, cost_words
from agent.domain.types import ChatAddress
from agent.record.settings.chat_choices import (
    Named,
    choose_persona,
    list_chat_endpoints,
    list_personas,
    set_chat_budget,
)
from agent.record.settings.chat_manners import change_chat_manners
from agent.record.sums.budgets import BudgetUse, load_uses_of
from agent.record.sums.spendings import SumRange, load_spent
from agent.record.sums.tallies import account_subject
from tools.local_time import current_day

#: Words that take a choice back.
DEFAULT = frozenset({"default", "默认", "none", "无", "-"})
MOST_TOKENS = 10**12
_AMOUNT = re.compile(r"(\d{1,15})(?:\s*tokens?)?", re.IGNORECASE)
#: Names that an answer lists.
LISTED = 50


def choose_chat_persona(call: CommandCall) -> str:
    wanted, personas = call.command.arguments, list_personas()
    if not wanted:
        return gettext("%(name)s answers you here. There are: %(names)s.") % {
            "name": call.persona.name,
            "names": _names(personas),
        }
    found = None if wanted.casefold() in DEFAULT else _find(personas, wanted)
    if found is None and wanted.casefold() not in DEFAULT:
        return _not_there(wanted, personas)
    choose_persona(call.chat, found.pk if found else None, call.author)
    if found is None:
        return gettext("From the next message on, nobody is chosen for this chat alone.")
    return gettext("From the next message on, %(name)s answers here.") % {"name": found.name}


def choose_chat_model(call: CommandCall) -> str:
    wanted, endpoints = call.command.arguments, list_chat_endpoints()
    if not wanted:
        return gettext("%(name)s is asked first here. There are: %(names)s.") % {
            "name": call.services.name_model(call.persona),
            "names": _names(endpoints),
        }
    found = None if wanted.casefold() in DEFAULT else _find(endpoints, wanted)
    if found is None and wanted.casefold() not in DEFAULT:
        return _not_there(wanted, endpoints)
    if found is not None or call.manners.endpoint is not None:
        change_chat_manners(call.chat, call.author, endpoint_id=found.pk if found else None)
    if found is None:
        return gettext("From the next message on, no model is chosen for this chat alone.")
    return gettext("From the next message on, %(name)s is asked first here.") % {"name": found.name}


def set_budget(call: CommandCall) -> str:
    wanted = call.command.arguments.replace(",", "").replace("，", "").replace("_", "")
    if not wanted:
        return _tell_budgets(call.chat)
    amount = _AMOUNT.fullmatch(wanted)
    if wanted.casefold() in DEFAULT:
        set_chat_budget(call.chat, None, call.author)
        return gettext("This chat has no budget of its own any more.")
    if amount is None or int(amount[1]) > MOST_TOKENS:
        return tell_usage(call.command.name, call.manners.command_prefix)
    set_chat_budget(call.chat, int(amount[1]), call.author)
    return gettext(
        "This chat may use %(tokens)s tokens a day; after that only owners are answered."
    ) % {"tokens": f"{int(amount[1]):,}"}


def _tell_budgets(chat: ChatAddress) -> str:
    subjects = {
        SpendKind.TOTAL: "",
        SpendKind.ACCOUNT: account_subject(chat),
        SpendKind.CHAT: chat.place,
    }
    lines = [
        gettext("This chat today: %(spent)s.")
        % {"spent": _spent_today(SpendKind.CHAT, chat.place)},
        gettext("This account today: %(spent)s.")
        % {"spent": _spent_today(SpendKind.ACCOUNT, account_subject(chat))},
    ]
    lines += map(_tell_use, load_uses_of(subjects))
    return "\n".join(lines)


def _tell_use(use: BudgetUse) -> str:
    words = {"name": use.terms.label, "spent": use.spent_words, "limit": use.limit_words}
    if use.shortage is None:
        return gettext("Budget “%(name)s”: %(spent)s of %(limit)s.") % words
    words |= {"state": use.stop_words, "shortage": use.shortage.words}
    text = gettext("Budget “%(name)s” (%(state)s): %(spent)s of %(limit)s; %(shortage)s.")
    return text % words


def _spent_today(kind: SpendKind, subject: str) -> str:
    spent = load_spent(SumRange(kind, subject, current_day()))
    costs = [cost_words(nano, currency) for currency, nano in spent.costs.items()]
    return join_words([f"{spent.tokens:,} {TOKENS}", *costs])


def _find(rows: Sequence[Named], wanted: str) -> Named | None:
    """The row of this name; whatever its case, where that is one."""
    exact = [row for row in rows if row.name == wanted]
    alike = [row for row in rows if row.name.casefold() == wanted.casefold()]
    return exact[0] if exact else alike[0] if len(alike) == 1 else None


def _not_there(wanted: str, rows: Sequence[Named]) -> str:
    return gettext("There is no “%(name)s”. There are: %(names)s.") % {
        "name": wanted[:64],
        "names": _names(rows),
    }


def _names(rows: Sequence[Named]) -> str:
    return join_words([*(row.name for row in rows[:LISTED]), "default"])
