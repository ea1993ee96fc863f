"""Which rule decides over a request: the first that fits, those first that keep people out."""

from collections import Counter
from collections.abc import Iterable, Sequence

from django.db.models import Count
from django.utils import timezone

from agent.domain.requests import IncomingRequest, RequestKind, RuleAction
from agent.domain.types import ChatAddress
from agent.models import JoinRequest, RequestRule
from agent.record.settings.manners import is_for
from tools.models.tool_config import parse_ids


class RuleBook:
    """The rules as one transaction sees them, with how often each has decided today."""

    def __init__(self, rules: Iterable[RequestRule], used: "Counter[int] | None" = None) -> None:
        self._rules = sorted(rules, key=lambda rule: not _keeps_out(rule))
        self._used = used if used is not None else Counter[int]()

    def judge(self, request: IncomingRequest) -> tuple[RequestRule | None, RuleAction]:
        """What becomes of ``request``, and by which rule. Where a rule cannot know, or has decided
        as often as it may, the request waits."""
        for rule in self._rules:
            if not _fits(rule, request):
                continue
            if rule.least_level is not None and request.level is None:
                return rule, RuleAction.WAIT
            if rule.least_level is not None and (request.level or 0) < rule.least_level:
                continue
            if rule.per_day is not None and self._used[rule.pk] >= rule.per_day:
                return rule, RuleAction.WAIT
            self._used[rule.pk] += 1
            return rule, RuleAction(rule.action)
        return None, RuleAction.WAIT


def load_rule_book() -> RuleBook:
    rules = list(RequestRule.objects.filter(enabled=True))
    limited = [rule.pk for rule in rules if rule.per_day is not None]
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    ended = JoinRequest.objects.filter(rule__in=limited, decided_at__gte=midnight)
    decided = ended.exclude(state=JoinRequest.State.EXPIRED, decided_by="")  # nor by the rule
    used = decided.values_list("rule").annotate(count=Count("pk")).order_by() if limited else ()
    return RuleBook(rules, Counter(dict(used)))


def _keeps_out(rule: RequestRule) -> bool:
    return rule.action == RuleAction.REFUSE and bool(rule.listed)


def _fits(rule: RequestRule, request: IncomingRequest) -> bool:
    is_friend = request.kind == RequestKind.FRIEND
    peer = request.user_id if is_friend else request.group_id
    chat = ChatAddress(request.account, "private" if is_friend else "group", peer)
    return (
        rule.kind in ("", request.kind)
        and is_for(rule, chat)
        and (not rule.groups.strip() or request.group_id in parse_ids(rule.groups))
        and (not rule.listed or not rule.listed.isdisjoint((request.user_id, request.inviter_id)))
        and _has_words(rule.words.splitlines(), request.answer.casefold())
    )


def _has_words(lines: Sequence[str], said: str) -> bool:
    words = [line.strip().casefold() for line in lines if line.strip()]
    return not words or any(word in said for word in words)
