"""Makes the database, and the rows of what is special: the tool whose calls are counted outside,
how long one message may be, the chats where messages are merged or little may be spent, and a second
endpoint. Runs in a child process with Django set up."""

import sys

from django.core.management import call_command

from agent.models import Budget, Manners, ModelEndpoint
from chaos.load import SPECIAL, special_peer
from chaos.marks import PART_CHARS
from chaos.model import MAY_SPEND
from chaos.world import ACCOUNTS, FIRST_ACCOUNT
from tools.models import HttpTool

#: For so long further words of the same person are awaited.
MERGE_SECONDS = 0.4


def main() -> None:
    name, url, *second = sys.argv[1:]
    call_command("migrate", verbosity=0)
    HttpTool(
        name=name,
        description="Counts that it was called.",
        method="POST",
        url=url,
        body_kind="json",
        body='{"id": "{id}"}',
        parameters_schema={
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "required": ["id"],
        },
    ).save()
    Manners(name="chaos", part_chars=PART_CHARS).save()
    for second_url in second:
        ModelEndpoint(name="second", base_url=second_url, model="chaos").save()
    for number in range(ACCOUNTS):
        _make_special_chats(number)


def _make_special_chats(number: int) -> None:
    """Those of the account with this ``number``."""
    account = str(FIRST_ACCOUNT + number)
    keys = [
        (story, f"{kind}:{special_peer(number, at)}") for at, (story, kind) in enumerate(SPECIAL)
    ]
    merging = "\n".join(key for story, key in keys if story == "merge")
    row = Manners(name=f"merge {account}", account=account, chats=merging)
    row.merge_seconds = MERGE_SECONDS
    row.save()
    for key in (key for story, key in keys if story == "budget"):
        Budget(
            name=f"little {key}",
            kind="chat",
            subject=f"onebot:{account}:{key}",
            limit=MAY_SPEND,
            unit="tokens",
            at_limit="sentence",
        ).save()
