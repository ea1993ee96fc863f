"""Answers in several messages, as one text each."""

from collections.abc import Collection

from agent.models import Message, Run


def load_answers(run_pks: Collection[int]) -> dict[int, str]:
    """What the answers of runs that were sent in several messages said, by run: as the model put
    it; of one that broke off or was recalled in part, the messages that may be read."""
    said: dict[int, list[tuple[str, bool]]] = {pk: [] for pk in run_pks}
    rows = Message.objects.filter(run_id__in=run_pks, part__gte=1).order_by("pk")
    for run_pk, text, in_history, recalled_at in rows.values_list(
        "run_id", "text", "in_history", "recalled_at"
    ):
        said[run_pk].append((text, in_history and recalled_at is None))
    wholes = dict(Run.objects.filter(pk__in=run_pks).values_list("pk", "final_text"))
    return {
        pk: (wholes.get(pk) if all(is_shown for _, is_shown in parts) else "")
        or "\n".join(text for text, is_shown in parts if is_shown)
        for pk, parts in said.items()
    }
