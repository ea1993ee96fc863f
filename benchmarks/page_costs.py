"""What the operator's pages cost the server: milliseconds and queries, asked in one process.

Runs in a child process with Django set up, on a folder that :mod:`benchmarks.seeding` has filled.
Prints ``{"pages": {user: {page: [ms, CPU ms, queries, kilobytes]}}, "broken": {page: status}}``.
On a busy machine CPU alone means anything.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from agent.access import find_access
from agent.models import ChatSession, Message, Run
from benchmarks.cockpit_past import OWNERS
from benchmarks.process import ADMIN, HOST
from frostproject.cockpit.site import NAVIGATION, NavigationPage

ROUNDS = 5
#: Nobody waits for a page that takes longer, in milliseconds: it is asked once.
HOPELESS = 2_000
TIMES = "?since=today"
NO_SUCH_WORDS = "没有这样的话"


def navigation() -> Iterator[str]:
    """The address of each place of the navigation."""
    for group in NAVIGATION:
        for one in group.pages:
            try:
                if isinstance(one, NavigationPage):
                    yield reverse(one.url_name)
                else:
                    name = one.lower().replace(".", "_")
                    yield reverse(f"admin:{name}_changelist")
            except NoReverseMatch:
                continue


def chat_pages(chat: ChatSession) -> Iterator[str]:
    """The page of a chat: newest, older, at a day, searched, what it fetches while it is read."""
    page = reverse("admin:agent_chatsession_change", args=(chat.pk,))
    base = page.removesuffix("change/")
    pks = Message.objects.filter(session=chat).order_by("pk").values_list("pk", flat=True)
    newest, middle = pks.last() or 0, pks[pks.count() // 2]
    day = (timezone.localdate() - timedelta(days=150)).isoformat()
    yield from (page, f"{page}?before={middle}", f"{page}?around={middle}", f"{page}?date={day}")
    yield from (f"{page}?find=hello", f"{page}?find={NO_SUCH_WORDS}")
    yield from (f"{base}stream/?before={middle}", f"{base}news/?after={newest}&act=1")
    yield f"POST {base}export/jsonl/"
    yield f"{base}history/"


def run_pages(run: Run) -> Iterator[str]:
    page = reverse("admin:agent_run_change", args=(run.pk,))
    yield from (page, f"{page}?whole={run.model_calls}", f"{page.removesuffix('change/')}again/")


def pages(user: Any) -> Iterator[str]:
    """Every page that is measured for ``user``."""
    yield from navigation()
    yield from (reverse("admin:overview_state"), reverse("admin:start_live"))
    for name in ("chatsession", "message", "run", "toolcall", "step"):
        listed = reverse(f"admin:agent_{name}_changelist")
        yield from (listed + TIMES, f"{listed}?q=hello", f"{listed}?q={NO_SUCH_WORDS}")
    people = reverse("admin:people")
    chats = find_access(user).sessions().order_by("pk")
    chat = chats.first()
    if chat is None:
        return
    yield from (f"{people}?q=user", f"{people}?q={chat.peer_id}", f"{people}?q={NO_SUCH_WORDS}")
    writer = Message.objects.filter(session=chat, direction="in").order_by("-pk").first()
    if writer is not None:
        yield reverse("admin:person", args=(writer.sender_id,))
    yield from chat_pages(chat)
    runs = Run.objects.filter(session=chat).order_by("-pk")
    for run in runs[:2]:
        yield from run_pages(run)


def cost(client: Client, page: str) -> tuple[int, list[float]]:
    """Status, and milliseconds, those of CPU, queries and kilobytes."""
    times: list[float] = []
    cpu: list[float] = []
    answer: Any = None
    while len(times) < 1 + ROUNDS and (not times or times[0] < HOPELESS):
        began, cpu_began = time.perf_counter(), time.thread_time()
        answer = _ask(client, page)
        if answer.streaming:  # the first bytes are what the reader waits for
            asyncio.run(_first_part(answer.streaming_content))
        times.append(1000 * (time.perf_counter() - began))
        cpu.append(1000 * (time.thread_time() - cpu_began))
        answer.close()
    with CaptureQueriesContext(connection) as queries:
        again = _ask(client, page)
        size = 0 if again.streaming else len(again.content)
        again.close()
    medians = [round(statistics.median(some[1:] or some), 1) for some in (times, cpu)]
    return answer.status_code, [*medians, len(queries), round(size / 1024, 1)]


async def _first_part(parts: AsyncGenerator[bytes, None]) -> None:
    await anext(parts)
    await parts.aclose()


def _ask(client: Client, page: str) -> Any:
    method, _space, address = page.rpartition(" ")
    return client.post(address) if method else client.get(address)


def measure() -> dict[str, Any]:
    """The costs of all pages, for each user."""
    found: dict[str, dict[str, list[float]]] = {}
    broken: dict[str, int] = {}
    for name in (ADMIN, *OWNERS):
        user = User.objects.get(username=name)
        client = Client(headers={"host": HOST})
        client.force_login(user)
        found[name] = {}
        for page in dict.fromkeys(pages(user)):
            status, costs = cost(client, page)
            if status == 200:
                found[name][page] = costs
            elif status not in (403, 404):
                broken[f"{name} {page}"] = status
    return {"pages": found, "broken": broken}


def main() -> None:
    json.dump(measure(), sys.stdout)
