"""What the operator's pages cost the server: milliseconds and queries, asked in one process.

Runs in a child process with Django set up, on a folder that :mod:`benchmarks.seeding` has filled.
Prints ``{"pages": {user: {page: [ms, CPU ms, queries, kilobytes]}}, "daily": [pages], "broken": {page:
status}}``. On a busy machine CPU alone means anything. Pages are asked for as a browser does, compressed, and the
kilobytes are those sent. ``python -c "import django; django.setup(); from benchmarks.page_costs import
table; table()" WORD`` prints those of the superuser whose address holds WORD, one a line.

A page is written as its address; after a method such as ``POST``, or after the name of the part that the
workbench's script asks for.
"""

import asyncio
import gc
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
from frostproject.cockpit.spending import PERIODS
from frostproject.server.daphne_server import YOUNG_OBJECTS

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
    """The page of a chat, newest and older, and what it fetches while it is read."""
    page = reverse("admin:agent_chatsession_change", args=(chat.pk,))
    base = page.removesuffix("change/")
    pks = Message.objects.filter(session=chat).order_by("pk").values_list("pk", flat=True)
    newest, middle = pks.last() or 0, pks[pks.count() // 2]
    asked = Message.objects.filter(session=chat, direction="in", run__isnull=False)
    panels = ("chat", "rules", "settings", f"m{asked.order_by('-pk')[0].pk}")
    yield from (page, f"{page}?before={middle}", f"{page}?around={middle}")
    yield from (f"chat {page}", f"head {page}", *(f"panel {page}?panel={one}" for one in panels))
    yield from (f"{base}stream/?before={middle}", f"{base}news/?after={newest}&act=1")


def sought_pages(chat: ChatSession) -> Iterator[str]:
    """The page of a chat at a day and searched, the chat as a file, and the history of its row."""
    page = reverse("admin:agent_chatsession_change", args=(chat.pk,))
    base = page.removesuffix("change/")
    day = (timezone.localdate() - timedelta(days=150)).isoformat()
    yield from (f"{page}?date={day}", f"{page}?find=hello", f"{page}?find={NO_SUCH_WORDS}")
    yield from (f"POST {base}export/jsonl/", f"{base}history/")


def run_pages(run: Run) -> Iterator[str]:
    page = reverse("admin:agent_run_change", args=(run.pk,))
    yield from (page, f"{page}?whole={run.model_calls}", f"{page.removesuffix('change/')}again/")


def spending_pages() -> Iterator[str]:
    """What was spent in each period, by money and by tokens, and of each kind alone."""
    page = reverse("admin:spending")
    for since in PERIODS:
        yield from (f"{page}?since={since}", f"{page}?since={since}&by=tokens")
    yield from (f"{page}?since=30d&kind={kind}" for kind in ("person", "chat"))


def daily_pages() -> list[str]:
    """What operators look at every day."""
    chat = ChatSession.objects.order_by("pk")[0]
    shown = "admin:index", "admin:overview_state", "admin:overview_more"
    tables = "agent_chatsession", "agent_run", "tools_toolconfig"
    listed = [reverse(f"admin:{name}_changelist") for name in tables]
    usual = Run.objects.filter(session=chat).order_by("-pk")[1]
    run = reverse("admin:agent_run_change", args=(usual.pk,))
    spent = [page for page in spending_pages() if "&" not in page]
    chats = (f"rows {listed[0]}", *chat_pages(chat))
    return [*map(reverse, shown), *listed, *chats, run, *spent]


def pages(user: Any) -> Iterator[str]:
    """Every page that is measured for ``user``."""
    yield from daily_pages()
    yield from navigation()
    yield from spending_pages()
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
    yield from (*chat_pages(chat), *sought_pages(chat))
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
    word, _space, address = page.rpartition(" ")
    if word == "POST":
        return client.post(address)
    return client.get(address, headers={"X-Part": word} if word else {})


def measure() -> dict[str, Any]:
    """The costs of all pages, for each user."""
    _collect_as_server()
    found: dict[str, dict[str, list[float]]] = {}
    broken: dict[str, int] = {}
    for name in (ADMIN, *OWNERS):
        user = User.objects.get(username=name)
        client = _sign_in(user)
        found[name] = {}
        for page in dict.fromkeys(pages(user)):
            status, costs = cost(client, page)
            if status == 200:
                found[name][page] = costs
            elif status not in (403, 404):
                broken[f"{name} {page}"] = status
    return {"pages": found, "daily": daily_pages(), "broken": broken}


def _collect_as_server() -> None:
    """Look for garbage as seldom as a server does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _sign_in(user: Any) -> Client:
    client = Client(headers={"host": HOST, "accept-encoding": "gzip"})
    client.force_login(user)
    return client


def table() -> None:
    """Print what those pages cost that are asked for on the command line."""
    _collect_as_server()
    user = User.objects.get(username=ADMIN)
    client = _sign_in(user)
    print("    ms    CPU  queries    KB")
    for page in dict.fromkeys(pages(user)):
        if all(word in page for word in sys.argv[1:]):
            status, costs = cost(client, page)
            print("{:6.1f} {:6.1f} {:8} {:5}".format(*costs), page, "" if status == 200 else status)


def main() -> None:
    json.dump(measure(), sys.stdout)
