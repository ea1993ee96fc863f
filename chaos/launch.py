"""``python -m chaos.launch PACE ARGUMENTS``: ``manage.py ARGUMENTS`` in which some times are
shorter than usual.

PACE is a JSON object of dotted names and seconds. A process that died is taken for dead
after its lease; nothing else of the server is changed, so that what is found here is
found at the usual pace too, only later.
"""

import json
import sys
from importlib import import_module

import django
from django.core.management import execute_from_command_line

#: What scenarios of several processes run with: a lease of 6 s for 30, an answer of a client
#: awaited for 10 s instead of 60.
BRISK = {
    "agent.record.recovery.LEASE_SECONDS": 6,
    "agent.runtime.runtime.HEARTBEAT_SECONDS": 1,
    "onebot.gateway.delivery.SEND_TIMEOUT": 10,
}


def main() -> None:
    pace, *arguments = sys.argv[1:]
    django.setup()
    for name, seconds in json.loads(pace).items():
        module, _, constant = name.rpartition(".")
        owner = import_module(module)
        if not hasattr(owner, constant):
            raise SystemExit(f"chaos: there is no {name}")
        setattr(owner, constant, seconds)
    execute_from_command_line(["manage.py", *arguments])


if __name__ == "__main__":
    main()
