"""The scenarios: what is asked of the server, and what is asked of the figures."""

import asyncio
import contextlib
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import (
    admin_pages,
    change_times,
    discovery,
    fake_model,
    fleet,
    large_frames,
    mcp_costs,
    outside_costs,
    plugin_costs,
    recalling,
)
from benchmarks.chats import chats
from benchmarks.fake_model import LOOKS, FakeModel
from benchmarks.machine import Usage
from benchmarks.onebot_load import Load, Plan, connected, warm_up
from benchmarks.outcome import Outcome, of_tallies
from benchmarks.pictures import measure, picture_servers
from benchmarks.process import ADMIN, TOKEN, Installation, Server, fresh_folder
from benchmarks.reminder_times import read_lateness
from benchmarks.tally import Tally, percentile, slope

WARM_UP = 200
OWN_TOOLS = 46
"""With the four sample and chat tools that stay on beside them: fifty, and the tools that steer a
turn on top."""
MOST_QUERIES = 80
BIG_CHAT = (
    "/admin/agent/chatsession/1/change/"  # the first that is seeded, with a fifth of all messages
)


@dataclass(frozen=True)
class Options:
    """How the benchmark is run; ``scale`` multiplies every count."""

    scale: float = 1
    use_daphne: bool = False
    profile: Path | None = None
    processes: int = fleet.MOST_COUNT

    def scaled(self, count: int) -> int:
        return max(1, round(count * self.scale))


@dataclass
class Rig:
    """The fake model and an installation of the server that asks it."""

    options: Options
    model: FakeModel
    installation: Installation

    @contextlib.asynccontextmanager
    async def serving(
        self, on_answer: Callable[[Server, int], None] | None = None
    ) -> AsyncIterator[tuple[Server, Load]]:
        """A server with every client connected and a first stretch of load behind it."""
        with self.installation.serving() as server:
            report = (lambda answered: on_answer(server, answered)) if on_answer else None
            async with connected([server.port], TOKEN) as load:
                self.model.set_latency(0)
                await warm_up(load, self.options.scaled(WARM_UP))
                load.on_answer = report
                yield server, load


Scenario = Callable[[Rig], Awaitable[Outcome]]


async def measured(server: Server, load: Load, plan: Plan) -> tuple[Tally, float]:
    """The tally, and the server's CPU milliseconds per message, the recording afterwards
    included."""
    before = server.usage().cpu_seconds
    tally = await load.run(plan)
    return tally, 1000 * (server.usage().cpu_seconds - before) / max(1, tally.answered)


async def saturate(rig: Rig) -> Outcome:
    """64 in flight, a model that answers at once: CPU and bytes on record per message. Then many
    in flight in few chats: their order."""
    async with rig.serving() as (server, load):
        before = server.database_bytes()
        tally, cpu = await measured(server, load, Plan(chats(1000), rig.options.scaled(4000)))
        used = asdict(server.usage())
        grown = (server.database_bytes() - before) / max(1, tally.answered)
        rig.model.set_latency(0, 20)
        ordered = await load.run(Plan(chats(16, first=5000), rig.options.scaled(1000)))
    details = {"load": tally.report(), "in_order": ordered.report(), "server": used}
    return of_tallies(
        {"cpu_ms_per_message": 4, "database_bytes_per_message": 6 * 1024},
        {"cpu_ms_per_message": cpu, "database_bytes_per_message": grown},
        [tally, ordered],
        **details,
    )


async def rate50(rig: Rig) -> Outcome:
    """50 messages a second at random moments, a model that takes 500 ms: what the server adds to
    that."""
    async with rig.serving() as (server, load):
        rig.model.set_latency(500)
        tally, cpu = await measured(
            server, load, Plan(chats(1000), rig.options.scaled(1500), per_second=50)
        )
    figures = {
        "added_ms_p50": percentile(tally.added_ms, 0.5),
        "added_ms_p99": percentile(tally.added_ms, 0.99),
    }
    return of_tallies(
        {"added_ms_p50": 15, "added_ms_p99": 100},
        figures | {"cpu_ms_per_message": cpu},
        [tally],
        load=tally.report(),
    )


async def inflight2000(rig: Rig) -> Outcome:
    """2,000 under way at once, a model that takes 2 s."""
    scaled = rig.options.scaled
    async with rig.serving() as (server, load):
        rig.model.set_latency(2000)
        plan = Plan(chats(scaled(4000)), scaled(4000), in_flight=scaled(2000), timeout_seconds=60)
        tally, cpu = await measured(server, load, plan)
        used = asdict(server.usage())
    figures = {"seconds_for_all": tally.wall_seconds, "cpu_ms_per_message": cpu}
    return of_tallies({"seconds_for_all": 15}, figures, [tally], load=tally.report(), server=used)


async def growth(rig: Rig) -> Outcome:
    """A long run over 1,000 chats: the server's memory, and whether it still grows in the second
    half."""
    scaled, samples = rig.options.scaled, list[tuple[float, Usage]]()
    every = scaled(250)

    def sample(server: Server, answered: int) -> None:
        if answered % every == 0:
            samples.append((answered / 1000, server.usage()))

    async with rig.serving(sample) as (server, load):
        tally, cpu = await measured(
            server, load, Plan(chats(scaled(1000)), scaled(20_000), max_seconds=600)
        )
        used = server.usage()
    figures = {
        "rss_mib": used.rss_mib,
        "growth_mib_per_1000": slope([(count, usage.rss_mib) for count, usage in samples]),
        "anonymous_growth_mib_per_1000": slope(
            [(count, usage.anonymous_mib) for count, usage in samples]
        ),
        "cpu_ms_per_message": cpu,
    }
    track = [[usage.rss_mib, usage.anonymous_mib] for _, usage in samples[::8]]
    target = {"rss_mib": 200, "growth_mib_per_1000": 0.3}
    return of_tallies(
        target,
        figures,
        [tally],
        load=tally.report(),
        server=asdict(used),
        rss_and_anonymous_mib=track,
    )


async def history(rig: Rig) -> Outcome:
    """Chats with 10 and with 1,000 messages of history in turn: the CPU per message must not depend
    on it.

    The context is cut to ten messages of history, so that both kinds ask the model
    the same, and only the finding of those ten differs.
    """
    scaled, count, rounds = rig.options.scaled, 200, 10
    played = {"short": chats(scaled(count), 0), "long": chats(scaled(count), count)}
    rig.installation.settings["MAX_CONTEXT_MESSAGES"] = "12"
    await rig.installation.seed("history", "0", str(scaled(count)), "10", seconds=120)
    await rig.installation.seed("history", str(count), str(scaled(count)), "1000", seconds=300)
    costs: dict[str, list[float]] = {"short": [], "long": []}
    async with rig.serving() as (server, load):
        tallies = [
            await load.run(Plan(chosen, scaled(1000), in_flight=min(64, len(chosen))))
            for chosen in played.values()
        ]
        for round_number in range(rounds):
            # The order changes by turns too, lest one kind always comes after the other.
            for name in ("short", "long") if round_number % 2 else ("long", "short"):
                plan = Plan(
                    played[name], scaled(500), in_flight=min(64, scaled(count)), linger_seconds=0.5
                )
                tally, cpu = await measured(server, load, plan)
                tallies.append(tally)
                costs[name].append(round(cpu, 3))
    medians = {f"cpu_ms_{name}": statistics.median(values) for name, values in costs.items()}
    ratio = medians["cpu_ms_long"] / (medians["cpu_ms_short"] or 1)
    return of_tallies(
        {"long_to_short": 1.1}, {"long_to_short": ratio} | medians, tallies, rounds=costs
    )


async def tools(rig: Rig) -> Outcome:
    """32 chats that use tools side by side: what a tool says must reach the chat that asked, and no
    other."""
    figures, tallies = {}, dict[str, Tally]()
    async with rig.serving() as (server, load):
        for script in ("send", "weather"):
            plan = Plan(chats(32), rig.options.scaled(1000), in_flight=32, script=script)
            tallies[script], figures[f"cpu_ms_per_message_{script}"] = await measured(
                server, load, plan
            )
    outcome = of_tallies(
        {},
        figures,
        list(tallies.values()),
        **{name: tally.report() for name, tally in tallies.items()},
    )
    outcome.faults["crossed_tool_results"] += rig.model.stats.crossed
    return outcome


async def tools50(rig: Rig) -> Outcome:
    """50 tools offered instead of 4, and six calls instead of one: what a tool offered and what a
    call costs.

    By turns, and on one server: the operator's rows switch the 46 others on and off. Six
    calls of one answer need as many model calls as one does, so that the difference is theirs
    alone. What
    50 tools cost the whole server holds their way to the model, in a request of 35 KB instead of 3;
    what listing them costs is measured by itself.
    """
    rig.installation.own_tools, rounds = OWN_TOOLS, 8
    costs: dict[str, list[float]] = {"4": [], "50": [], "look": [], "looks": []}
    tallies = []
    async with rig.serving() as (server, load):
        for _ in range(rounds):
            for name in costs:
                if name in ("4", "50"):
                    await rig.installation.seed("offer", str(int(name) - 4), seconds=60)
                    await warm_up(load, 20)
                script = name if name in LOOKS else "plain"
                plan = Plan(chats(500), rig.options.scaled(600), script=script, linger_seconds=0.5)
                tally, cpu = await measured(server, load, plan)
                tallies.append(tally)
                costs[name].append(round(cpu, 3))
    medians = {name: statistics.median(values) for name, values in costs.items()}
    whole = {
        "ms_for_50_tools": medians["50"] - medians["4"],
        "ms_for_a_call": (medians["looks"] - medians["look"]) / 5,
    }
    figures = whole | rig.installation.tool_costs(OWN_TOOLS + 4)
    outcome = of_tallies({"listing_ms": 0.2, "ms_for_a_call": 0.3}, figures, tallies, rounds=costs)
    outcome.faults["crossed_tool_results"] += rig.model.stats.crossed
    return outcome


async def outside(rig: Rig) -> Outcome:
    """200 tools of ten MCP servers and none, by turns on one server: what they cost messages that
    use none."""
    rounds = 8
    rig.installation.settings |= outside_costs.settings()
    costs: dict[str, list[float]] = {"0": [], str(outside_costs.SERVERS): []}
    tallies = []
    async with rig.serving() as (server, load):
        for round_number in range(rounds):
            for count in sorted(costs, reverse=bool(round_number % 2)):
                await rig.installation.seed("outside", count, seconds=90)
                await warm_up(load, WARM_UP)  # connecting is over, and paid for
                tally, cpu = await measured(
                    server, load, Plan(chats(500), rig.options.scaled(800), linger_seconds=0.5)
                )
                tallies.append(tally)
                costs[count].append(round(cpu, 3))
    medians = {count: statistics.median(values) for count, values in costs.items()}
    figures = {
        "ms_for_the_tools": medians[str(outside_costs.SERVERS)] - medians["0"],
        "cpu_ms_per_message": medians["0"],
    }
    figures |= await asyncio.to_thread(outside_costs.listing_costs, rig.installation)
    return of_tallies({"offer_ms": 0.2}, figures, tallies, rounds=costs)


async def mcp(rig: Rig) -> Outcome:
    """A call of an MCP server's tool over stdio, through our registry and by the official library
    alone."""
    return await asyncio.to_thread(mcp_costs.costs, rig.installation, rig.options.scaled(2000))


async def plugins(rig: Rig) -> Outcome:
    """A call of a plugin's tool through our registry, over the function itself; and a plugin's
    memory."""
    return await asyncio.to_thread(plugin_costs.costs, rig.installation, rig.options.scaled(2000))


async def pictures(rig: Rig) -> Outcome:
    """Messages of eight pictures of 1 MiB: what is added before the vision call, and to what others
    wait for."""
    with picture_servers() as images:
        rig.installation.model_port = images.port
        rig.installation.settings |= {
            "VISUAL_MODEL_NAME": "bench-vision",
            "FETCH_ALLOW": "127.0.0.1",
        }
        async with rig.serving() as (server, load):
            return await measure(server, load, images, rig.options.scaled)


async def frames(rig: Rig) -> Outcome:
    """Frames of 60 MiB (a text, a picture) and one of 1.4 million segments: memory, and how long
    the event loop stands still."""
    return await large_frames.cost(rig.installation, rig.options.scale)


async def recall(rig: Rig) -> Outcome:
    """10,000 notes: what it costs to find those that matter to a message, and what it costs when
    memory is off."""
    return await asyncio.to_thread(
        recalling.costs, rig.installation, rig.options.scaled(recalling.NOTES)
    )


async def search(rig: Rig) -> Outcome:
    """500 deferred tools: what it costs to find one, and what they cost a step that finds none."""
    return await asyncio.to_thread(discovery.costs, rig.installation)


async def change(rig: Rig) -> Outcome:
    """Rows changed in one process on PostgreSQL: how long until another one counts them."""
    changes = rig.options.scaled(change_times.CHANGES)
    return await asyncio.to_thread(change_times.times, rig.installation, changes)


async def reminders(rig: Rig) -> Outcome:
    """10,000 reminders that are due in a year: what they cost an idle server. How late 200 are said
    that are due one by one, and 1,000 within a second."""
    far, near, crowd = map(rig.options.scaled, (10_000, 200, 1_000))
    rig.installation.settings["CHAT_ANSWERS_PER_MINUTE"] = "0"
    async with rig.serving() as (server, _):
        before = await _idle_percent(server)
    await rig.installation.seed("reminders", str(far), "0", "0", seconds=120)
    async with rig.serving() as (server, _):
        after = await _idle_percent(server)
        await rig.installation.seed("reminders", "0", str(near), str(crowd), seconds=120)
        deadline = time.monotonic() + 120
        while len(late := read_lateness(rig.installation.folder)) < near + crowd:
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(1)
    figures = {
        "added_idle_percent": after - before,
        "late_seconds_p99": percentile(late[:near], 0.99),
        "at_once_seconds_p99": percentile(late[near:], 0.99),
    }
    faults = Counter(
        lost=max(0, near + crowd - len(late)), doubled=max(0, len(late) - near - crowd)
    )
    return Outcome({"added_idle_percent": 0.1, "late_seconds_p99": 2}, figures, faults)


async def _idle_percent(server: Server, seconds: float = 20) -> float:
    """Of one core, while nobody asks for anything."""
    await asyncio.sleep(2)
    before = server.usage().cpu_seconds
    await asyncio.sleep(seconds)
    return 100 * (server.usage().cpu_seconds - before) / seconds


async def processes(rig: Rig) -> Outcome:
    """Several servers on one PostgreSQL and Redis, and one alone, by turns: CPU per message, and
    how much more work several do; what they cost idle."""
    return await fleet.costs(rig.installation, rig.options.processes, rig.options.scale)


async def start(rig: Rig) -> Outcome:
    """From the command to the first healthy answer, on an empty folder and on one that was used."""
    times: dict[str, list[float]] = {"first_start_seconds": [], "second_start_seconds": []}
    for _ in range(3):
        with fresh_folder() as folder:
            installation = Installation(folder, rig.installation.model_port, rig.options.use_daphne)
            for name in times:
                with installation.serving() as server:
                    times[name].append(server.start_seconds)
    figures = {name: statistics.median(values) for name, values in times.items()}
    return Outcome(
        dict.fromkeys(times, 3),
        figures,
        details={"runs": {n: [round(x, 2) for x in v] for n, v in times.items()}},
    )


async def admin(rig: Rig) -> Outcome:
    """Every page of the admin, and of the record's lists all that their first pages link to, over a
    million messages; also for those who may see three chats."""
    with rig.installation.serving():
        pass  # makes the database and the account
    sizes = str(rig.options.scaled(3000)), str(rig.options.scaled(1_000_000))
    seeding = time.monotonic()
    await rig.installation.seed("record", *sizes, seconds=900)
    await rig.installation.seed("cockpit", seconds=300)
    seeded = time.monotonic() - seeding
    with rig.installation.serving() as server:
        browser = admin_pages.Admin(server.port)
        browser.login()
        pages = admin_pages.paths(browser, "/admin/", BIG_CHAT, *admin_pages.LISTS)
        times = admin_pages.time_pages(browser, pages, time.monotonic() + 900)
        used = asdict(server.usage())
    slowest = dict(sorted(times.items(), key=lambda item: -item[1])[:30])
    alone = await asyncio.to_thread(rig.installation.page_costs)
    costs = [cost for pages in alone["pages"].values() for cost in pages.values()]
    daily = alone["pages"][ADMIN]
    figures = {
        "slowest_cockpit_page_ms": max(milliseconds for milliseconds, *_ in costs),
        "slowest_cockpit_page_cpu_ms": max(cpu for _, cpu, *_ in costs),
        "slowest_daily_page_cpu_ms": max(daily[page][1] for page in alone["daily"]),
        "most_queries": max(queries for _, _, queries, _ in costs),
        "slowest_page_ms": max(times.values()),
        "big_chat_ms": times[BIG_CHAT],
        "pages": len(times),
    }
    figures["pages_over_target"] = sum(milliseconds > 300 for milliseconds in times.values())
    details = {
        "slowest": slowest,
        "broken": browser.broken | alone["broken"],
        "cockpit": alone["pages"],
        "seed_seconds": round(seeded, 1),
        "server": used,
    }
    return Outcome(
        {
            "slowest_page_ms": 300,
            "slowest_cockpit_page_ms": 300,
            "slowest_cockpit_page_cpu_ms": 120,
            "slowest_daily_page_cpu_ms": 60,
            "most_queries": MOST_QUERIES,
        },
        figures,
        Counter(broken_pages=len(details["broken"])),
        details,
    )


SCENARIOS: dict[str, Scenario] = {
    function.__name__: function
    for function in (
        *(saturate, rate50, inflight2000, growth, history),
        *(
            tools,
            tools50,
            outside,
            mcp,
            plugins,
            pictures,
            frames,
            recall,
            search,
            change,
            reminders,
        ),
        *(processes, start, admin),
    )
}


async def play(
    scenario: Scenario, options: Options, seconds: float
) -> tuple[Outcome, dict[str, Any]]:
    """Run one scenario on an installation of its own; raises TimeoutError after ``seconds``."""
    model = FakeModel()
    listening = await fake_model.serve(model)
    try:
        with fresh_folder() as folder:
            port = fake_model.port_of(listening)
            installation = Installation(folder, port, options.use_daphne, options.profile)
            async with asyncio.timeout(seconds):
                outcome = await scenario(Rig(options, model, installation))
        return outcome, asdict(model.stats)
    finally:
        listening.close()
