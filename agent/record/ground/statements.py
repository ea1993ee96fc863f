"""The SQL that every message runs. What runs seldom is left to the ORM, which needs five to ten
times as long to compile a query as SQLite needs to run it.

The texts are PostgreSQL's. What SQLite says otherwise is put in its place when a statement first
runs there: ``= ANY(list)`` becomes a look into a JSON list, and locks and casts are left out. A
cast says how a value is given: ``::jsonb`` is anything that JSON can say, ``::timestamptz`` a
moment.

SQLite is asked without Django's cursors, which take several times as long as the statements
themselves, unless somebody listens to what is executed. Its errors are Django's all the same.
"""

import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from django.db.models import QuerySet

T = TypeVar("T")
#: Rows of one statement that adds; the rest, fewer than the last, are one. A database takes so many
#: values and no more, and each number of rows is a text of its own, which it prepares and keeps.
ROWS_AT_ONCE = (64, 32, 16, 8)
_PARAMETER = re.compile(r"%\((\w+)\)s((?:::\w+)?)")
_MANY = re.compile(r"(.*\sVALUES )(\(.*?\))(\s+(?:\)|RETURNING|ON CONFLICT)\s.*)", re.DOTALL)
_LIST, _LOCK = re.compile(r"= ANY\((%\(\w+\)s)\)"), re.compile(r"\s+FOR (?:NO KEY )?UPDATE\b")
#: What SQLite calls the same.
_JSON = {
    "json_object_agg(": "json_group_object(",
    "json_agg(": "json_group_array(",
    "json_build_array(": "json_array(",
    "::text": "",
}


class _Here(threading.local):
    """What the transaction of this thread is in, where that is known: to look it up takes as long
    as a small statement."""

    database: Any = None


here = _Here()


class _Form(NamedTuple):
    """A statement as one database takes it: the names of its values in the order of their places,
    and at which places JSON and moments are given as texts."""

    text: str
    direct: str
    """The same for SQLite without a cursor of Django's."""
    names: list[str]
    json_at: list[int]
    moments_at: list[int]


#: Queries that one statement puts together, at most: SQLite takes 500.
QUERIES_AT_ONCE = 200


def select_all(
    queries: Iterable["QuerySet[Any, Any]"], form: str = "SELECT * FROM ({}) AS part"
) -> list[tuple[Any, ...]]:
    """The rows of all ``queries``, asked for at once though each has an order and a bound of its
    own. ``form`` stands around each."""
    parts = [query.query.sql_with_params() for query in queries]
    found: list[tuple[Any, ...]] = []
    for begin in range(0, len(parts), QUERIES_AT_ONCE):
        some = parts[begin : begin + QUERIES_AT_ONCE]
        sql = " UNION ALL ".join(form.format(text) for text, _values in some)
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute(sql, [value for _text, values in some for value in values])
            found += cursor.fetchall()
    return found


class Statement:
    """SQL with named parameters, as ``%(name)s``; rows of values are mappings of their names.

    ``times`` are the columns of its results that are moments, ``values`` those that are JSON.
    """

    def __init__(self, text: str, *, times: str = "", values: str = "") -> None:
        self.text = text
        self._times, self._values = times.split(), values.split()
        self._reads = bool(self._times or self._values)
        self._forms: dict[tuple[str, int], _Form] = {}

    def rows(self, **values: object) -> list[Sequence[Any]]:
        """What it finds, or returns of the rows that it changed."""
        return self.many((values,))

    def each(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Run once for each of ``rows``."""
        for row in rows:
            self.many((row,))

    def add(self, rows: Sequence[Mapping[str, object]]) -> list[int]:
        """Insert ``rows``, many with one statement; the keys that it returns, in order."""
        return sorted(pk for (pk,) in self.many(rows))

    def many(self, rows: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
        """Run for ``rows``, many with one statement; what it returns, in any order."""
        db, found = here.database or connections[DEFAULT_DB_ALIAS], list[Sequence[Any]]()
        for some in _portions(rows):
            form = self._forms.get((db.vendor, len(some))) or self._compile(db.vendor, len(some))
            given = [row[name] for row in some for name in form.names]
            for place in form.json_at:
                if given[place] is not None:
                    given[place] = json.dumps(given[place])
            for place in form.moments_at:
                if given[place] is not None:
                    given[place] = str(given[place].astimezone(UTC).replace(tzinfo=None))
            if form.direct and not (db.execute_wrappers or db.force_debug_cursor):
                if db.connection is None or db.needs_rollback:
                    db.validate_no_broken_transaction()
                    db.ensure_connection()
                query = form.direct
                try:
                    cursor = db.connection.execute(query, given)
                    got = cursor.fetchall()
                except sqlite3.Error:
                    with db.wrap_database_errors:
                        raise
            else:
                cursor = db.cursor()
                cursor.execute(form.text, given)
                got = cursor.fetchall() if cursor.description else []
            found += self._read(got, cursor.description) if got and self._reads else got
        return found

    def _read(self, rows: list[tuple[Any, ...]], description: Any) -> list[Sequence[Any]]:
        columns = [column[0] for column in description]
        found = [list(row) for row in rows]
        for place, column in enumerate(columns):
            if column in self._times:
                for row in found:
                    if row[place] is not None:
                        row[place] = parse_moment(row[place])
            elif column in self._values:
                for row in found:
                    if row[place] is not None:
                        row[place] = json.loads(row[place])
        return list(found)

    def _compile(self, vendor: str, count: int) -> _Form:
        """The text as the database takes it, for ``count`` rows."""
        text, is_embedded = self.text, vendor == "sqlite"
        if is_embedded:
            text = _LIST.sub(r"IN (SELECT value FROM json_each(\1::list))", _LOCK.sub("", text))
            for postgres, sqlite in _JSON.items():
                text = text.replace(postgres, sqlite)
        parameters = _PARAMETER.findall(text)
        text = _PARAMETER.sub("%s" if is_embedded else r"%s\2", text)
        if count > 1 and (parts := _MANY.fullmatch(text)):
            text = f"{parts[1]}{', '.join([parts[2]] * count)}{parts[3]}"
        casts = [cast for _, cast in parameters] * count
        as_json = ("::jsonb", "::list") if is_embedded else ("::jsonb",)
        self._forms[vendor, count] = form = _Form(
            text,
            text.replace("%s", "?") if is_embedded else "",
            [name for name, _ in parameters],
            [place for place, cast in enumerate(casts) if cast in as_json],
            [at for at, cast in enumerate(casts) if is_embedded and cast == "::timestamptz"],
        )
        return form


def _portions(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    begin, count = 0, len(rows)
    while left := count - begin:
        size = left if left < ROWS_AT_ONCE[-1] else next(s for s in ROWS_AT_ONCE if s <= left)
        yield rows if size == count else rows[begin : begin + size]
        begin += size


def parse_moment(found: datetime | str) -> datetime:
    """A moment as a database, or its JSON, says it."""
    moment = datetime.fromisoformat(found) if isinstance(found, str) else found
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# --- What operators changed, and which runs are whose ----------------------------

read_versions = Statement("SELECT json_object_agg(id, number)::text FROM tools_configversion")

#: By key, so that two processes never wait for each other's locks in a circle.
lock_runs = Statement("""
    SELECT id, claim_number, place FROM agent_run WHERE id = ANY(%(runs)s)
    ORDER BY id FOR NO KEY UPDATE
""")

# --- Chats ------------------------------------------------------------

find_session = Statement("""
    SELECT id, title FROM agent_chatsession
    WHERE platform = %(platform)s AND account = %(account)s AND kind = %(kind)s
      AND peer_id = %(peer_id)s
""")

add_sessions = Statement("""
    INSERT INTO agent_chatsession (
        platform, account, kind, peer_id, title, state, discovered_tools, is_continuing,
        created_at, last_message_at
    ) VALUES (
        %(platform)s, %(account)s, %(kind)s, %(peer_id)s, %(title)s, '{}', '[]', false,
        %(now)s::timestamptz, %(now)s::timestamptz
    ) RETURNING id
""")

#: What a message is judged by, and what its run begins with, is read by the statement that says
#: there is something new: whatever any process has committed counts for it, and who changes it
#: later finds the message on record. With it the numbers of the settings, and which of the events
#: with these keys are on record already, without an order, for which SQLite would read the whole
#: chat. (Of two processes that are told of an event at once the second fails at its key, and finds
#: it when it tries again.)
touch_session = Statement(
    """
    UPDATE agent_chatsession SET last_message_at = %(now)s::timestamptz
    WHERE id = %(pk)s AND platform = %(platform)s AND account = %(account)s AND kind = %(kind)s
      AND peer_id = %(peer_id)s
    RETURNING title, pause_reason, paused_until,
              (SELECT json_object_agg(id, number)::text FROM tools_configversion),
              (SELECT json_agg(json_build_array(event_key, created_at))::text
               FROM agent_message
               WHERE session_id = %(pk)s AND event_key = ANY(%(keys)s)) AS seen,
              state, timing_gate, is_continuing,
              discovered_tools, context_after, taken_over_by, taken_over_until,
              EXISTS (SELECT 1 FROM agent_note)
    """,
    times="paused_until taken_over_until",
    values="seen state discovered_tools",
)

find_session_state = Statement(
    """
    SELECT state, timing_gate, is_continuing, discovered_tools, context_after,
           taken_over_by, taken_over_until, EXISTS (SELECT 1 FROM agent_note)
    FROM agent_chatsession WHERE id = %(session)s
    """,
    times="taken_over_until",
    values="state discovered_tools",
)

#: The names that one person spoke under in one chat, the newest first, among the newest messages of
#: that person. Chats are told apart by the database: a message may mention many who say much.
find_names_of_person = Statement("""
    SELECT sender_name FROM agent_message
    WHERE session_id = %(session)s AND id IN (
        SELECT id FROM agent_message WHERE sender_id = %(person)s ORDER BY id DESC LIMIT %(newest)s
    )
    ORDER BY id DESC LIMIT %(names)s
""")

find_speakers = Statement("""
    SELECT direction, reason, sender_id, sender_name FROM agent_message
    WHERE session_id = %(session)s ORDER BY id DESC LIMIT %(newest)s
""")

#: What was said in a chat before the message ``before``, the newest first, but for what was undone.
find_recent = Statement(
    """
    SELECT id, direction, state, reason, in_history, recalled_at, created_at, sender_id,
           sender_name, message_id, text, media_text, happened_at
    FROM agent_message m WHERE id < %(before)s AND session_id = %(session)s
      AND NOT EXISTS (SELECT 1 FROM agent_undostep u WHERE u.run_id = m.run_id)
    ORDER BY id DESC LIMIT %(newest)s
    """,
    times="created_at happened_at",
)

#: The conversation of a chat after the message ``after``, the newest first; of an answer in several
#: messages the first. The sign before ``id`` keeps SQLite at the index of the conversation.
find_history = Statement(
    """
    SELECT direction, reason, part, run_id, author, text, media_text, context_text, sender_id,
           sender_name, message_id, happened_at, sender_role, header
    FROM agent_message
    WHERE session_id = %(session)s AND in_history AND recalled_at IS NULL AND +id > %(after)s
      AND (part IS NULL OR part <= 1)
    ORDER BY run_id DESC, id DESC LIMIT %(newest)s
    """
)

#: Something of the conversation of a chat that waits for its first run.
find_waiting = Statement("""
    SELECT id FROM agent_message WHERE session_id = %(session)s AND in_history AND run_id IS NULL
    LIMIT 1
""")

# --- Whose work it is ------------------------------------------------------------

#: The processes that have claimed what is not over.
find_claimants = Statement("""
    SELECT claimed_by FROM agent_run WHERE state = 'running' AND claimed_by <> ''
    UNION SELECT claimed_by FROM agent_message
    WHERE state IN ('waiting', 'running', 'pending', 'sent') AND claimed_by <> ''
    UNION SELECT claimed_by FROM agent_toolcall WHERE state = 'pending' AND claimed_by <> ''
""")

#: Something of an account that waits, and that ``process`` has not claimed.
find_claimable = Statement("""
    SELECT message.id
    FROM agent_message AS message JOIN agent_chatsession AS session ON session.id = session_id
    WHERE account = %(account)s AND message.direction = 'in'
      AND message.state IN ('waiting', 'running') AND claimed_by <> %(process)s
    LIMIT 1
""")

find_by_hand = Statement("""
    SELECT id FROM agent_message
    WHERE state = 'pending' AND direction = 'out' AND author IS NOT NULL LIMIT 1
""")

#: One that is worked on before a message of its chat; not an event that gathers others.
find_earlier = Statement("""
    SELECT id FROM agent_message
    WHERE session_id = %(session)s AND id < %(message)s AND direction = 'in'
      AND state IN ('waiting', 'running') AND NOT (state = 'waiting' AND reason = 'event')
    LIMIT 1
""")

# --- Messages that come in ------------------------------------------------------------

add_arrivals = Statement("""
    INSERT INTO agent_message (
        session_id, direction, state, reason, detail, sender_id, sender_name, sender_role,
        message_id, text, media_text, segments, raw, quoted_id, temp_group_id, event_key, header,
        claimed_by, claim_number, place, in_history, run_id, happened_at, created_at,
        recalled_at, settled_at
    ) VALUES (
        %(session)s, 'in', %(state)s, %(reason)s, %(detail)s, %(sender_id)s, %(sender_name)s,
        %(sender_role)s, %(message_id)s, %(text)s, '', %(segments)s::jsonb, %(raw)s::jsonb,
        %(quoted_id)s, %(temp_group_id)s, %(event_key)s, %(header)s::jsonb, %(claimed_by)s,
        %(claim_number)s, %(place)s, %(in_history)s, %(run)s, %(happened_at)s::timestamptz,
        %(created_at)s::timestamptz, %(recalled_at)s::timestamptz, %(settled_at)s::timestamptz
    ) RETURNING id
""")

#: What was reported before is left as it is, and returns nothing.
add_events = Statement("""
    INSERT INTO agent_chatevent (
        session_id, key, kind, change, user_id, target_id, operator_id, message_id, seconds, words,
        happened_at, at
    ) VALUES (
        %(session)s, %(key)s, %(kind)s, %(change)s, %(user_id)s, %(target_id)s, %(operator_id)s,
        %(message_id)s, %(seconds)s, %(words)s, %(happened_at)s::timestamptz, %(at)s::timestamptz
    ) ON CONFLICT (session_id, key) DO NOTHING RETURNING session_id, key
""")

# --- Runs, their steps and their calls ------------------------------------------------------------

#: Only while nobody else has claimed the message, and it has no end.
take_message = Statement("""
    UPDATE agent_message SET state = 'running', claimed_by = %(process)s
    WHERE id = %(pk)s AND claim_number = %(claim_number)s AND state IN ('waiting', 'running')
    RETURNING id
""")

add_runs = Statement("""
    INSERT INTO agent_run (
        session_id, message_id, origin, model, claimed_by, claim_number, place, persona,
        config_version, started_at, state, final_text, error, notes, model_calls, input_tokens,
        output_tokens
    ) VALUES (
        %(session)s, %(message)s, %(origin)s, %(model)s, %(claimed_by)s, %(claim_number)s,
        %(place)s, %(persona)s, %(config_version)s, %(started_at)s::timestamptz, 'running', '', '',
        '[]', 0, 0, 0
    ) RETURNING id
""")

find_any_note = Statement("SELECT id FROM agent_note LIMIT 1")

find_offer = Statement("SELECT id FROM agent_tooloffer WHERE digest = %(digest)s")

#: The endpoint may be deleted while it answers.
add_steps = Statement("""
    INSERT INTO agent_step (
        run_id, number, phase, request, tools, response, finish_reason, error, input_tokens,
        output_tokens, latency_ms, created_at, endpoint_id, endpoint_name, model, cached_tokens,
        reasoning_tokens, cost_nano, currency, offer_id, parameters, sent, attempts, response_rest
    ) VALUES (
        %(run)s, %(number)s, %(phase)s, %(request)s::jsonb, %(tools)s::jsonb,
        %(response)s::jsonb, %(finish_reason)s, %(error)s, %(input_tokens)s, %(output_tokens)s,
        %(latency_ms)s, %(created_at)s::timestamptz,
        (SELECT id FROM agent_modelendpoint WHERE id = %(endpoint)s),
        %(endpoint_name)s, %(model)s, %(cached_tokens)s, %(reasoning_tokens)s, %(cost_nano)s,
        %(currency)s, %(offer)s, %(parameters)s::jsonb, %(sent)s::jsonb, %(attempts)s::jsonb,
        %(rest)s::jsonb
    ) RETURNING id
""")

add_calls = Statement("""
    INSERT INTO agent_toolcall (
        run_id, step_id, position, call_id, tool_name, arguments, requested_by, state, created_at,
        provider_name, mocked, result, error, progress, claimed_by, full_result
    ) VALUES (
        %(run)s, %(step)s, %(position)s, %(call_id)s, %(tool_name)s, %(arguments)s::jsonb,
        %(requested_by)s, %(state)s, %(created_at)s::timestamptz, '', false, '', '', '', '', ''
    ) RETURNING id
""")

begin_call = Statement("UPDATE agent_toolcall SET state = 'running' WHERE id = %(pk)s")

settle_call = Statement("""
    UPDATE agent_toolcall
    SET state = %(state)s, provider_name = %(provider_name)s, mocked = %(mocked)s,
        result = %(result)s, structured_content = %(structured_content)s::jsonb,
        error = %(error)s, duration_ms = %(duration_ms)s, full_result = %(full_result)s,
        verdict = %(verdict)s, decided_by = %(decided_by)s,
        state_change = %(state_change)s::jsonb
    WHERE id = %(pk)s
""")

# --- Answers, and the end of runs ------------------------------------------------------------

add_replies = Statement("""
    INSERT INTO agent_message (
        session_id, direction, state, text, segments, echo, run_id, tool_call_id, temp_group_id,
        part, claimed_by, created_at, reason, detail, sender_id, sender_name, sender_role,
        message_id, media_text, in_history, claim_number, place
    ) VALUES (
        %(session)s, 'out', %(state)s, %(text)s, %(segments)s::jsonb, %(echo)s, %(run)s,
        %(tool_call)s, %(temp_group_id)s, %(part)s, %(claimed_by)s, %(created_at)s::timestamptz,
        '', '', '', '', '', '', '', false, 0, ''
    ) RETURNING id
""")

send_message = Statement("""
    UPDATE agent_message SET state = 'sent', echo = %(echo)s, claimed_by = %(process)s
    WHERE id = %(pk)s
""")

#: How messages end, with what that is counted by. NULL leaves what there is. One that has ended
#: before ends only ``again``: what was counted then has to be taken back first.
settle_messages = Statement(
    """
    WITH ended (pk, state, detail, message_id, run, in_history, now, again) AS (
        VALUES (
            %(pk)s, %(state)s, %(detail)s, %(message_id)s, %(run)s::bigint, %(in_history)s,
            %(now)s::timestamptz, %(again)s
        )
    )
    UPDATE agent_message
    SET state = ended.state, detail = ended.detail, in_history = ended.in_history,
        message_id = COALESCE(ended.message_id, agent_message.message_id),
        run_id = COALESCE(ended.run, agent_message.run_id), settled_at = ended.now
    FROM ended
    WHERE agent_message.id = ended.pk AND (agent_message.settled_at IS NULL OR ended.again)
    RETURNING agent_message.id, session_id,
        (SELECT account FROM agent_chatsession AS session WHERE session.id = session_id),
        direction, agent_message.state, reason, created_at
    """,
    times="created_at",
)

explain_message = Statement("UPDATE agent_message SET reason = %(reason)s WHERE id = %(pk)s")

tell_run = Statement("UPDATE agent_run SET final_text = %(text)s WHERE id = %(pk)s")

finish_runs = Statement("""
    WITH ended (pk, state, final_text, error, notes, now, calls, input, output) AS (
        VALUES (
            %(pk)s, %(state)s, %(final_text)s, %(error)s, %(notes)s::jsonb, %(now)s::timestamptz,
            %(model_calls)s, %(input_tokens)s, %(output_tokens)s
        )
    )
    UPDATE agent_run
    SET state = ended.state, final_text = ended.final_text, error = ended.error,
        notes = ended.notes, finished_at = ended.now, model_calls = model_calls + ended.calls,
        input_tokens = input_tokens + ended.input, output_tokens = output_tokens + ended.output
    FROM ended
    WHERE agent_run.id = ended.pk
""")

#: The newest summary of a chat that begins after a run.
find_summary = Statement("""
    SELECT text FROM agent_digest
    WHERE session_id = %(session)s AND kind = %(kind)s AND first_run > %(after)s
    ORDER BY last_run DESC LIMIT 1
""")

# --- Sums ------------------------------------------------------------

find_tallies = Statement("""
    SELECT subject, recent, day, of_day, told_at, told_on, silent_until FROM agent_tally
    WHERE subject = ANY(%(subjects)s) ORDER BY subject FOR UPDATE
""")

save_tallies = Statement("""
    INSERT INTO agent_tally (
        subject, recent, day, of_day, told_at, told_on, silent_until, touched_at
    ) VALUES (
        %(subject)s, %(recent)s, %(day)s, %(of_day)s, %(told_at)s, %(told_on)s, %(silent_until)s,
        %(now)s
    ) ON CONFLICT (subject) DO UPDATE SET
        recent = excluded.recent, day = excluded.day, of_day = excluded.of_day,
        told_at = excluded.told_at, told_on = excluded.told_on,
        silent_until = excluded.silent_until, touched_at = excluded.touched_at
""")

add_spent = Statement("""
    INSERT INTO agent_spendsum AS known (
        day, kind, subject, currency, calls, input_tokens, cached_tokens, output_tokens,
        reasoning_tokens, cost_nano
    ) VALUES (
        %(day)s, %(kind)s, %(subject)s, %(currency)s, %(calls)s, %(input)s, %(cached)s,
        %(output)s, %(reasoning)s, %(cost_nano)s
    ) ON CONFLICT (day, kind, subject, currency) DO UPDATE SET
        calls = known.calls + excluded.calls,
        input_tokens = known.input_tokens + excluded.input_tokens,
        cached_tokens = known.cached_tokens + excluded.cached_tokens,
        output_tokens = known.output_tokens + excluded.output_tokens,
        reasoning_tokens = known.reasoning_tokens + excluded.reasoning_tokens,
        cost_nano = known.cost_nano + excluded.cost_nano
""")

find_spent = Statement("""
    SELECT currency, SUM(input_tokens), SUM(output_tokens), SUM(cost_nano) FROM agent_spendsum
    WHERE kind = %(kind)s AND subject = %(subject)s AND day >= %(first_day)s GROUP BY currency
""")

#: What endings are counted by.
find_ended = Statement(
    """
    SELECT message.id, session_id, session.account, direction, message.state, reason,
           message.created_at
    FROM agent_message AS message JOIN agent_chatsession AS session ON session.id = session_id
    WHERE message.id = ANY(%(messages)s)
    """,
    times="created_at",
)

find_chats_of_runs = Statement("""
    SELECT run.id, session_id, session.account
    FROM agent_run AS run JOIN agent_chatsession AS session ON session.id = session_id
    WHERE run.id = ANY(%(runs)s)
""")

count_arrivals = Statement("""
    INSERT INTO agent_activitysum AS known (day, hour, session_id, received, addressed)
    VALUES (%(day)s, %(hour)s, %(session)s, %(received)s, %(addressed)s)
    ON CONFLICT (day, hour, session_id) DO UPDATE SET
        received = known.received + excluded.received,
        addressed = known.addressed + excluded.addressed
""")

count_endings = Statement("""
    INSERT INTO agent_activitysum AS known (
        day, hour, session_id, answered, failed, sent, unsent, unknown, runs, failed_runs,
        within_1, within_2, within_3, within_5, within_8, within_13, within_20, within_30,
        within_60, within_120, later
    ) VALUES (
        %(day)s, %(hour)s, %(session)s, %(answered)s, %(failed)s, %(sent)s, %(unsent)s,
        %(unknown)s, %(runs)s, %(failed_runs)s, %(within_1)s, %(within_2)s, %(within_3)s,
        %(within_5)s, %(within_8)s, %(within_13)s, %(within_20)s, %(within_30)s, %(within_60)s,
        %(within_120)s, %(later)s
    ) ON CONFLICT (day, hour, session_id) DO UPDATE SET
        answered = known.answered + excluded.answered,
        failed = known.failed + excluded.failed,
        sent = known.sent + excluded.sent,
        unsent = known.unsent + excluded.unsent,
        unknown = known.unknown + excluded.unknown,
        runs = known.runs + excluded.runs,
        failed_runs = known.failed_runs + excluded.failed_runs,
        within_1 = known.within_1 + excluded.within_1,
        within_2 = known.within_2 + excluded.within_2,
        within_3 = known.within_3 + excluded.within_3,
        within_5 = known.within_5 + excluded.within_5,
        within_8 = known.within_8 + excluded.within_8,
        within_13 = known.within_13 + excluded.within_13,
        within_20 = known.within_20 + excluded.within_20,
        within_30 = known.within_30 + excluded.within_30,
        within_60 = known.within_60 + excluded.within_60,
        within_120 = known.within_120 + excluded.within_120,
        later = known.later + excluded.later
""")

count_calls = Statement("""
    INSERT INTO agent_activitysum AS known (day, hour, session_id, tool_calls, failed_calls)
    VALUES (%(day)s, %(hour)s, %(session)s, %(calls)s, %(failures)s)
    ON CONFLICT (day, hour, session_id) DO UPDATE SET
        tool_calls = known.tool_calls + excluded.tool_calls,
        failed_calls = known.failed_calls + excluded.failed_calls
""")

count_tool_uses = Statement("""
    INSERT INTO agent_tooluse AS known (day, session_id, tool, calls, failures)
    VALUES (%(day)s, %(session)s, %(tool)s, %(calls)s, %(failures)s)
    ON CONFLICT (day, session_id, tool) DO UPDATE SET
        calls = known.calls + excluded.calls, failures = known.failures + excluded.failures
""")
