"""Which rule decides over a request: the first that fits, those first that keep people out."""

from collections import Counter

from django.utils import timezone

from agent.domain.requests import RuleAction, read_answer
from agent.models import JoinRequest, RequestRule
from agent.record.settings.manners import is_for
from tools.models.tool_config import parse_ids


class RuleBook:
    """The rules as one transaction sees them, with how often each has decided today."""

    def __init__(self) -> None:
        rules = list(RequestRule.objects.filter(enabled=True))
        self._rules = sorted(
            rules, key=lambda rule: not (rule.action == RuleAction.REFUSE and rule.listed)
        )
        limited = [rule.pk for rule in rules if rule.per_day is not None]
        midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
        ended = JoinRequest.objects.filter(rule__in=limited, decided_at__gte=midnight)
        decided = ended.exclude(state=JoinRequest.State.EXPIRED, decided_by="")  # nor by the rule
        self._used = Counter[int](decided.values_list("rule", flat=True) if limited else ())

    def judge(self, request: JoinRequest) -> tuple[RequestRule | None, RuleAction]:
        """What becomes of ``request``, and by which rule. Where a rule cannot know, or has decided
        as often as it may, the request waits."""
        said = read_answer(request.comment).casefold()
        rule = next((rule for rule in self._rules if _fits(rule, request, said)), None)
        if (
            rule is None
            or (rule.least_level is not None and request.level is None)
            or (rule.per_day is not None and self._used[rule.pk] >= rule.per_day)
        ):
            return rule, RuleAction.WAIT
        self._used[rule.pk] += 1
        return rule, RuleAction(rule.action)


def _fits(rule: RequestRule, request: JoinRequest, said: str) -> bool:
    """Whether all that ``rule`` says fits; a level that is not known does."""
    words = [line.strip().casefold() for line in rule.words.splitlines() if line.strip()]
    return (
        rule.kind in ("", request.kind)
        and is_for(rule, request.chat)
        and (not rule.groups.strip() or request.group_id in parse_ids(rule.groups))
        and (not rule.listed or not rule.listed.isdisjoint((request.user_id, request.inviter_id)))
        and (not words or any(word in said for word in words))
        and (rule.least_level is None or request.level is None or request.level >= rule.least_level)
    )
