"""Answers in several messages, as one text each."""

from collections.abc import Collection

from agent.models import Message, Run


def load_answers(run_pks: Collection[int]) -> dict[int, str]:
    """What the answers of runs that were sent in several messages said, by run: as the model put
    it; of one that broke off, the messages that were, or may have been, delivered."""
    said: dict[int, list[tuple[str, bool]]] = {pk: [] for pk in run_pks}
    rows = Message.objects.filter(run_id__in=run_pks, part__gte=1).order_by("pk")
    for row in rows.only("run_id", "text", "in_history", "recalled_at"):
        is_shown = row.in_history and row.recalled_at is None
        said[row.run_id].append((row.text, is_shown))
    wholes = dict(Run.objects.filter(pk__in=run_pks).values_list("pk", "final_text"))
    return {
        pk: wholes.get(pk, "")
        if parts and all(is_shown for _, is_shown in parts)
        else "\n".join(text for text, is_shown in parts if is_shown)
        for pk, parts in said.items()
    }
