"""The running agent of one server process: started lazily, drained on the way out.

daphne has no lifespan events, so the first thing that needs the agent starts it, on
the loop it runs on.
"""

import asyncio
import contextlib
import fcntl
import logging
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings

from agent.api.queries import StatelessQueries
from agent.chat.conversation import ConversationHandler
from agent.chat.hand_messages import HandMessages
from agent.chat.inbox import Inbox
from agent.commands.call import CommandServices
from agent.commands.desk import CommandDesk
from agent.domain.client_actions import ClientActions
from agent.domain.endpoint import ModelRole
from agent.domain.group_acts import LEAST_ROLE, roles_for
from agent.domain.states import MessageReason
from agent.domain.types import ChatAddress, MediaSource, Outbox
from agent.llm.spending import meter
from agent.media.media_store import run_copy_expiry, run_copy_size_limit
from agent.record.chats.chat_events import EventArrival
from agent.record.chats.chat_record import MessageRecall, record_recall
from agent.record.endpoint_reports import log_failure
from agent.record.ground.clock_skew import ClockWatch
from agent.record.record import Record
from agent.record.settings.endpoints import mirror_environment
from agent.record.settings.live import LiveSettings
from agent.record.settings.snapshot import Settings, load_reminder_news
from agent.record.settings.timed_silences import end_silences
from agent.record.sums import budgets
from agent.record.sums.budgets import BudgetAlarms
from agent.record.sums.quotas import AnswerQuotas
from agent.record.waiting.pauses import load_pauses
from agent.record.waiting.take_overs import end_take_overs
from agent.run.call_stops import calls_under_way
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from agent.runtime import record_retention, serving, wiring
from agent.runtime.budget_ledger import BudgetLedger
from agent.runtime.record_retention import RetentionRule
from agent.runtime.serving import ServingRegistry
from agent.runtime.settings_watch import SettingsWatch
from agent.runtime.steering import Steering
from agent.runtime.trials import Trials
from agent.stickers.store import count_usable_stickers
from tools.error_boundary import log_errors
from tools.live_rows import LiveKind
from tools.processes import crash_points
from tools.time_limits import TIME_LIMITS

if TYPE_CHECKING:
    from agent.chat.undoing import Undoing
    from agent.domain.alerts import AlertLook
    from agent.record.arrivals.events import EventDesk, TakenEvent
    from agent.runtime.alert_watch import AlertWatch
    from agent.runtime.daily_work import DailyWork
    from agent.runtime.reminder_clock import ReminderClock
    from agent.runtime.request_desk import RequestDesk

logger = logging.getLogger(__name__)

#: How often a process renews its lease and looks for orphaned work, in seconds.
HEARTBEAT_SECONDS = TIME_LIMITS.heartbeat
#: What may still be written once a draining process has stopped its runs, in seconds.
LAST_SECONDS = 0.5
#: What else belongs to the agent is closed within so many seconds after that time for runs.
CLOSE_SECONDS = 2.0
#: How often the operator's changes are polled while no message comes, in seconds.
WATCH_SECONDS = 1.0


def _obey_acts(conversations: ConversationHandler, settings: Settings) -> None:
    """Have the account's role in a group found out before it is answered, where a tool may act."""
    rows = (settings.tools.get(name) for name in LEAST_ROLE if roles_for(name))
    conversations.acts_are_on = any(row is not None and row.enabled for row in rows)


class Runtime:
    """Inbox, engine and record of this process, on one event loop."""

    _ends_at: float | None = None
    """When all of it is to be closed, once it drains."""
    _alerts: "AlertWatch | None" = None
    _presence: asyncio.Task[None] | None = None
    _lock: IO[str] | None = None
    _has_listed = False
    shares_database = False
    """Whether other processes may work on the same database; known once started."""
    _loop: asyncio.AbstractEventLoop | None = None
    _events: "EventDesk | None" = None
    """None until there is an event."""
    _reminders: "ReminderClock | None" = None
    """None until there is a reminder."""
    _undoing: "Undoing | None" = None
    """None until something is taken back."""
    _requests: "RequestDesk | None" = None
    """None until there is a request."""

    def __init__(
        self,
        outbox: Outbox,
        source: MediaSource | None = None,
        kept: Sequence[RetentionRule] = (),
        find_alerts: "Callable[[], AlertLook] | None" = None,
        actions: ClientActions | None = None,
    ) -> None:
        """``kept`` is what the layer above has on record for some days, ``find_alerts`` what the
        one above that tells of."""
        self.process_id = uuid.uuid4().hex
        live = LiveSettings()
        self._quotas = quotas = AnswerQuotas(live, settings.TOKENS_PER_DAY)
        self.record = Record(self.process_id, live, quotas)
        self._budgets = BudgetLedger(self.record, BudgetAlarms(live))
        quotas.known_tokens = self._budgets.known_tokens
        meter.set_receiver(self._budgets.spend)
        self.book = wiring.build_endpoint_book(self.record, self._budgets)
        """Whom this process asks for what."""
        self._chat_tools = wiring.build_chat_tools(self.record, source, self.book)
        self.registry = wiring.build_tool_registry(
            lambda: live.current, self.record, self._chat_tools, self.book
        )
        self._live = wiring.build_live_providers(self.record, self.book)
        self._follow_rows(live, outbox)
        self.files = wiring.build_file_store()
        """The copies of what messages hold; also those that came inside a frame."""
        planner, gate = self.book.model(ModelRole.CHAT), self.book.model(ModelRole.TIMING)
        engine = Engine(planner, self.registry, gate)
        self.engines = PersonaEngines(engine, self.book)
        self.queries = StatelessQueries(self.record, self.engines)
        self.jobs = BackgroundCalls(self.record, self._wake)
        self._media = (
            wiring.build_media_pipeline(self.record, source, self.book) if source else None
        )
        self.memory = wiring.build_memory(self.record, self.book)
        self._outbox, self._actions = outbox, actions
        conversations = self._build_conversations(outbox, actions)
        conversations.names = source
        conversations.decide_requests = lambda *said: self.requests.obey(*said)
        self.inbox = Inbox(self.record, conversations, self._budgets.foresee)
        """What waits and what is answered in this process."""
        self.trials = Trials(self.record, self.engines, self.book, outbox, self.memory.notebook)
        hand_messages = HandMessages(self.record, outbox, conversations.floors)
        self._steering = Steering(
            outbox,
            self.inbox,
            hand_messages,
            lambda pks: self.requests.wait_decided(pks),
            self._find_undoing,
            actions,
        )
        self._clock_watch = ClockWatch()
        self._accounts: set[str] = set()
        self._kept = [*record_retention.retention_rules(), *kept]
        self._retention: list[asyncio.Task[None]] = []
        self._find_alerts = find_alerts
        self._daily: dict[str, DailyWork] = {}
        self._news = SettingsWatch()
        self._watches: list[asyncio.Task[None]] = []

    def _build_conversations(
        self, outbox: Outbox, actions: ClientActions | None
    ) -> ConversationHandler:
        services = CommandServices(
            self._quotas, outbox, self.engines.name_model, self.registry, actions
        )
        conversations = ConversationHandler(
            self.record,
            self.engines,
            outbox,
            self.jobs,
            media=self._media,
            memory=self.memory,
            commands=CommandDesk(self.record, services, self._find_undoing),
            actions=actions,
            reminded=self._remind,
        )
        self.record.live.subscribe(lambda _, new: _obey_acts(conversations, new), "tools")
        return conversations

    def ensure_started(self) -> None:
        """Start what runs in the background, once. Must be called on the loop that serves."""
        if self._presence is not None:
            return
        loop = self._loop = asyncio.get_running_loop()
        alone = self._is_alone()
        self.shares_database = self.inbox.shares_database = not alone
        self._budgets.shares_database = not alone
        self.book.start()
        for mirror in (mirror_environment, budgets.mirror_environment):
            self.record.submit(mirror).add_done_callback(log_failure)
        first = self.record.renew_lease(
            alone=alone, is_first=True
        )  # before anything can be claimed from the dead
        self._presence = loop.create_task(self._stay_present(first), name="presence")
        retained = (
            run_copy_expiry(self.record, self.files),
            run_copy_size_limit(self.record, self.files),
            record_retention.run_record_expiry(self.record, self._kept),
            record_retention.run_count_pruning(self.record),
        )
        self._retention = [loop.create_task(work, name="retention") for work in retained]
        self.memory.start()
        for provider in self._live:
            provider.start()
        watches = self._watch_settings(), self._news.listen()
        self._watches = [loop.create_task(watch, name="settings") for watch in watches]
        serving.begin_serving(
            ServingRegistry(
                self.registry,
                loop,
                lambda: self.record.outage,
                self.trials,
                self._steering,
                self._find_alerts,
            )
        )

    async def put_down_tools(self) -> None:
        """Make a row for every listed tool that has none; the first call lists all tools. No I/O if
        none is new."""
        if not self._has_listed:
            await self.registry.list_tools()
            self._has_listed = True
        await self.registry.newcomers.put_down(self.record, self._live)

    def message_recalled(self, recall: MessageRecall) -> Coroutine[Any, Any, None]:
        """A client reports that a message was taken back: it is marked on record, before anything
        that arrives later, and not answered."""
        recorded = self.record.submit(record_recall, recall, is_in_order=True)

        async def drop() -> None:
            await self.inbox.drop_recalled(await recorded)

        return drop()

    def event_happened(self, arrival: EventArrival) -> None:
        """A client reports an event: it is put on record, and what rules say of it is done."""
        from agent.record.arrivals.events import EventDesk

        if self._events is None:
            starter = self.record.run_starter
            self._events = EventDesk(self.process_id, starter.live, self._quotas)
        taken = self.record.submit_batched(self._events.accept_events, arrival)
        taken.add_done_callback(self._on_event)

    def _on_event(self, taken: "asyncio.Future[list[TakenEvent]]") -> None:
        if taken.cancelled():
            return
        if error := taken.exception():
            logger.error("An event could not be recorded: %s", error)
            return
        for one in taken.result():
            crash_points.hit_crash_point("event_taken")
            self.inbox.take_up(*one)

    async def chat_paused(self, chat: ChatAddress) -> None:
        """The account cannot speak in ``chat``: the answer under way there is stopped, which costs
        no further model call."""
        await self.inbox.stop(chat, reason=MessageReason.PAUSED)

    @property
    def has_requests(self) -> bool:
        """Whether there was ever somebody who asked to be let in."""
        return bool(self.record.live.current.versions.get(LiveKind.REQUESTS))

    @property
    def requests(self) -> "RequestDesk":
        """What decides over them; made when it is first asked for."""
        if self._requests is None:
            from agent.runtime.request_desk import RequestDesk

            if self._actions is None:
                raise LookupError("no clients can be answered in this process")
            self._requests = RequestDesk(
                self.record,
                self._actions,
                lambda account: self._steering.outbox.is_connected(
                    ChatAddress(account, "private", "")
                ),
                self._wake,
            )
        return self._requests

    def account_connected(self, account: str) -> None:
        """Answers for ``account`` can go out again: what waits for it is taken up."""
        self.ensure_started()
        self._accounts.add(account)
        if self._reminders is not None:
            self._reminders.look()
        self.inbox.resume(account)

    def account_disconnected(self, account: str) -> None:
        self._accounts.discard(account)

    async def drain(self, seconds: float) -> None:
        """Let what runs finish within ``seconds``; the rest stays on record for the next start."""
        self.record.fail_pending_after(seconds + LAST_SECONDS)
        self._ends_at = asyncio.get_running_loop().time() + seconds + CLOSE_SECONDS
        await asyncio.gather(
            self.inbox.drain(seconds),
            self._steering.hand_messages.drain(seconds),
            self.jobs.drain(seconds),
            self.memory.drain(seconds),
            self.trials.stop(),
        )

    async def close(self) -> None:
        """End everything that :meth:`ensure_started` began; nothing can be accepted afterwards.
        What takes longer than the time that is left since :meth:`drain` is left to itself."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._ends_at):
                await self._close_parts()
        meter.set_receiver(None)
        await self.record.close()
        if self._lock is not None:
            self._lock.close()

    async def _close_parts(self) -> None:
        serving.end_serving(self.registry)
        for task in filter(None, [self._presence, *self._retention, *self._watches]):
            task.cancel()
            await asyncio.wait([task])
        if self._media is not None:
            await self._media.close()
        for work in self._daily.values():
            await work.close()
        if self._alerts is not None:
            await self._alerts.close()
        if self._reminders is not None:
            await self._reminders.close()
        if self._undoing is not None:
            await self._undoing.close()
        if self._requests is not None:
            await self._requests.close()
        await self.jobs.drain(0)
        await self.trials.stop()
        await self.memory.close()
        await self.registry.close()
        await self._chat_tools.close()
        await self.book.close()

    def _obey_installation(self) -> None:
        """Tell the parts that keep a setting what it is now. In the database thread."""
        self._quotas.tokens_per_day = settings.TOKENS_PER_DAY
        self.files.least_free = settings.MEDIA_FREE_BYTES
        self.registry.defer(settings.DEFER_TOOLS_ABOVE)
        self.memory.obey(wiring.memory_settings())
        budgets.mirror_environment()

    def _follow_rows(self, live: LiveSettings, outbox: Outbox) -> None:
        """Have the rows read that this process needs besides, and obeyed once they are committed,
        in the database thread."""
        live.read_by(
            lambda known: replace(known, accounts=outbox.load_accounts()), LiveKind.ACCOUNTS
        )
        live.read_by(lambda known: replace(known, pauses=load_pauses()), LiveKind.PAUSES)
        live.read_by(
            lambda known: replace(known, stickers=count_usable_stickers()), LiveKind.STICKERS
        )
        live.read_by(
            lambda known: replace(known, reminders=load_reminder_news()), LiveKind.REMINDERS
        )
        live.subscribe(lambda *_: self._obey_installation(), "said")
        live.subscribe(self._on_reminder_news, "reminders", "manners", "pauses")
        live.subscribe(lambda _, new: outbox.replace_accounts(new.accounts), "accounts")
        live.subscribe(lambda _, new: outbox.replace_pauses(new.pauses), "pauses")
        live.subscribe(lambda _, new: self._chat_tools.stickers.recount(new.stickers), "stickers")
        for provider in self._live:
            self.registry.register_provider(provider)

    def _wake(self, account: str) -> None:
        """Something of this process's making waits in a chat of ``account``."""
        if account in self._accounts:
            self.inbox.resume(account)

    def _on_reminder_news(self, old: Settings, new: Settings) -> None:
        """In the database thread: something else may be due, or be said again."""
        if self._loop is not None and new.reminders.is_any:
            is_afresh = old.manners is not new.manners
            self._loop.call_soon_threadsafe(self._remind, is_afresh)

    def _remind(self, is_afresh: bool = False) -> None:
        """Look whether a reminder is due; the first time there is one, begin to."""
        if self._reminders is None:
            from agent.runtime.reminder_clock import ReminderClock

            self._reminders = ReminderClock(
                self.record, self._quotas, self._accounts, self.inbox.resume
            )
        self._reminders.look(afresh=is_afresh)

    def _find_undoing(self) -> "Undoing":
        if self._undoing is None:
            from agent.chat.undoing import Undoing

            self._undoing = Undoing(
                self.record, self.registry, self._outbox, self._actions, self.memory.notebook
            )
        return self._undoing

    async def _stay_present(self, sighting: "asyncio.Future[bool]") -> None:
        """Renew the lease. Who was there at the start is dead or not; who comes later is judged by
        its own lease."""
        while True:
            with log_errors(logger, "The sign of life of this process could not be written"):
                if await sighting:
                    await self._start_over()
                self._steering.hand_messages.look()
                if self.record.live.current.versions.get(LiveKind.UNDO):
                    self._find_undoing().look()
                self._look_at_daily_work()
                self._look_at_alerts()
                if self._reminders is not None:
                    self._reminders.check_time()
                if self.has_requests and self._actions is not None:
                    await self.requests.check()
                await asyncio.gather(
                    self.inbox.audit(),
                    self.record.submit_batched(end_silences, None),
                    self.record.submit(end_take_overs),
                    self.record.submit(self._clock_watch.look),
                )
            await asyncio.sleep(HEARTBEAT_SECONDS)
            sighting = self.record.renew_lease(alone=False)
            for account in self._accounts:
                self.inbox.resume(account)

    def _look_at_daily_work(self) -> None:
        """At what is switched on."""
        if settings.DAILY_BACKUP:
            if "backup" not in self._daily:
                from agent.runtime.daily_backup import back_up_daily

                self._daily["backup"] = back_up_daily()
            self._daily["backup"].look()
        if settings.VERSION_URL:
            if "version" not in self._daily:
                from agent.runtime.newer_version import watch_versions

                self._daily["version"] = watch_versions()
            self._daily["version"].look()

    def _look_at_alerts(self) -> None:
        """Where there was ever a route to tell them by."""
        if self._find_alerts and self.record.live.current.versions.get(LiveKind.ALERT_ROUTES):
            if self._alerts is None:
                from agent.runtime.alert_watch import AlertWatch

                self._alerts = AlertWatch(self.record, self.process_id, self._find_alerts)
            self._alerts.begin()

    async def _start_over(self) -> None:
        """Other processes took this one for dead and its work with it. It continues like one that
        has just started."""
        logger.error(
            "This process was away for longer than its lease; "
            "what it had in hand was taken over by others"
        )
        await self.inbox.abandon()
        await self.jobs.drain(0)
        await self.trials.stop()
        for account in self._accounts:
            self.inbox.resume(account)

    async def _watch_settings(self) -> None:
        """A server or plugin that is switched on is to be there before the next message asks for
        it."""
        while True:
            with log_errors(logger, "What the operator has changed could not be looked up"):
                await self.record.submit(self.record.run_starter.reload_settings)
            if calls_under_way:
                with log_errors(logger, "Which calls are to be stopped could not be looked up"):
                    await self._steering.stop_calls()
            with log_errors(logger, "Rows for new tools could not be made"):
                await self.put_down_tools()
            await self._news.wait(WATCH_SECONDS)

    def _is_alone(self) -> bool:
        """Whether this process has the embedded database to itself.

        The lock goes with the process, however it ends; so the next one knows at once,
        and without waiting for a lease to run out, that all work on record is its own.
        """
        database = settings.DATABASES["default"]
        if "sqlite" not in str(database["ENGINE"]):
            return False
        lock = Path(f"{database['NAME']}.lock").open("w", encoding="ascii")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            logger.error(
                "Another server process works on %s; use PostgreSQL for several", database["NAME"]
            )
            return False
        self._lock = lock
        return True
