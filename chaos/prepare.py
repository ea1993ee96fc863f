"""Makes the database, and the row of the tool whose calls are counted outside. Runs in a child
process with Django set up."""

import sys

from django.core.management import call_command

from tools.models import HttpTool


def main() -> None:
    name, url = sys.argv[1:]
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
