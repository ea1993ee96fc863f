"""Fixtures and guards of the whole suite.

Tiers: ``live`` is what talks to processes that it starts (:func:`_is_live`), ``slow`` what takes
seconds; the others are functions and pages, and ``make test-fast`` runs those alone.
Guards: no test leaves the machine (``NetworkGuard``), no async test blocks the event
loop (``LoopWatch``; ``@pytest.mark.may_block(reason)`` lets one), and an async test that
uses the database uses it with real transactions.
"""

import contextlib
import gc
import inspect
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from django.core.management.color import no_style
from django.db import connections
from django.template import Context, Template
from django.test import TransactionTestCase
from django.test.signals import template_rendered
from django.utils import translation
from django.utils.safestring import SafeString

from agent.markdown import drawing_packages
from tests import left_overs, peers
from tests.file_server import FileServer
from tests.guards import LoopWatch, NetworkGuard
from tests.live_server import LiveServer, Program
from tests.scripted_model import ScriptedModel
from tools import error_boundary

if TYPE_CHECKING:
    from tests.services import PostgresServer

TOKEN = "t0k"
TESTS = Path(__file__).parent
LIVE_FOLDERS = {"e2e", "browser", "databases", "demo"}
#: The fixtures that start a process to talk to.
SERVERS = {"live", "start_server", "redis_url", "aimock", "_llmock_server"}
SERVERS |= {"postgres_server", "postgres", "postgresql"}  # the last two also as a parameter

# No deadline: the machine may be shared. No surprise: the examples are the same in every run.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")

network = NetworkGuard()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # of collecting the tests, a quarter would be looking for garbage
    if config.getoption("dist", "no") == "no":  # tests run in this process
        import frostproject.urls  # noqa: F401 - registers the pages, which tests look up in the admin

    config.addinivalue_line(
        "markers", "may_block(reason): let this async test block the event loop"
    )
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # In the background of a script. Children inherit what is ignored, and not a handler.
        signal.signal(signal.SIGINT, lambda *_: None)
    config.pluginmanager.register(left_overs)
    network.__enter__()
    config.add_cleanup(lambda: network.__exit__(None, None, None))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark what is live, give async tests of the database real transactions, and begin with the
    files that take longest.

    Async code reaches the database from another thread. The transaction that plain
    ``django_db`` wraps around a test would hold SQLite's write lock against it.
    """
    for item in items:
        if _is_async(item) and item.get_closest_marker("django_db"):
            item.add_marker(pytest.mark.django_db(transaction=True), append=False)
        if _is_live(item):
            item.add_marker(pytest.mark.live)
    yield  # pytest-django puts them into an order of its own
    marked = {
        name: {item.path for item in items if item.get_closest_marker(name)}
        for name in ("live", "slow")
    }
    # Otherwise one process has the last long file before it, and the others have nothing to do.
    items.sort(key=lambda item: [item.path not in marked[name] for name in ("live", "slow")])


def _parameters(item: pytest.Item) -> list[str]:
    call = getattr(item, "callspec", None)
    return [value for value in call.params.values() if isinstance(value, str)] if call else []


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Leave what was imported out of every later collection of garbage: it stays anyway."""
    done = yield
    gc.freeze()
    gc.enable()
    return done


def _is_live(item: pytest.Item) -> bool:
    """Whether a test is of the live tier: it talks to a server, a database server or a browser
    in a process of its own."""
    fixtures = set(getattr(item, "fixturenames", ()))
    fixtures |= {name for name in _parameters(item) if name in SERVERS}
    folder = item.path.parts[len(TESTS.parts)] if TESTS in item.path.parents else ""
    servers = SERVERS | {"model_server"} if folder == "security" else SERVERS
    return folder in LIVE_FOLDERS or bool(servers & fixtures)


def _is_async(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)


# --- Guards ---------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _stay_on_this_machine() -> Iterator[None]:
    network.taken_attempts()
    yield
    if attempts := network.taken_attempts():
        pytest.fail(f"the test tried to leave this machine: {attempts}")


@pytest.fixture(autouse=True)
def _keep_the_loop_free(request: pytest.FixtureRequest) -> Iterator[None]:
    if not _is_async(request.node) or request.node.get_closest_marker("may_block"):
        yield
        return
    with LoopWatch() as watch:
        yield
    if watch.stalls:
        pytest.fail("\n".join(watch.stalls))


@pytest.fixture(autouse=True)
def _leave_nothing_to_another_test() -> Iterator[None]:
    """Neither a language, which requests of Django's test client keep in this thread, nor limits of
    log lines, nor sums."""
    from agent.record.sums import past  # wants Django's models, which not all have loaded

    yield
    translation.deactivate()
    for limit in error_boundary._limits:
        limit._said.clear()
    past.of_activity.forget()
    past.of_spending.forget()


@pytest.fixture(scope="session", autouse=True)
def _tell_of_whole_pages(django_test_environment: None) -> None:
    """Tests ask what a page is drawn with. Django's runner has each of its hundred parts copy that
    as well."""

    def render(template: Template, context: Context) -> SafeString:
        is_whole = context.template is template
        if is_whole and not str(template.name).startswith("django/forms/"):
            template_rendered.send(template, template=template, context=context)
        return template.nodelist.render(context)

    Template._render = render  # type: ignore[attr-defined]


# --- Database -------------------------------------------------------------------


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> Iterator[None]:
    """Keep the test database in a file: one in memory behaves differently between threads."""
    default = connections["default"]
    if default.vendor != "sqlite":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="frost-test-db-") as folder:
        default.settings_dict["TEST"]["NAME"] = str(Path(folder) / "test.sqlite3")
        yield


def _delete_rows(case: TransactionTestCase) -> None:
    """Delete what a test with real transactions left, but not the kinds of rows and permissions
    with which each database begins. Django deletes and makes these again, ten times as dear."""
    for name in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        connection = connections[name]
        tables = connection.introspection.django_table_names(
            only_existing=True, include_views=False
        )
        deleted = sorted({*tables} - {"django_content_type", "auth_permission"})
        connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), deleted))


TransactionTestCase._fixture_teardown = _delete_rows  # type: ignore[attr-defined]


# --- The scripted model ---------------------------------------------------------


@pytest.fixture(scope="session")
def model_server() -> Iterator[ScriptedModel]:
    """The scripted model for as long as the suite runs, so that its address never changes. Tests
    want ``model``."""
    with ScriptedModel() as server:
        yield server


@pytest.fixture
def model(model_server: ScriptedModel) -> Iterator[ScriptedModel]:
    """The scripted model, empty; the test fails when it leaves answers over or makes calls it did
    not script."""
    model_server.reset()
    yield model_server
    try:
        model_server.verify()
    finally:
        model_server.reset()


# --- Model endpoints of others ---------------------------------------------------


@pytest.fixture(scope="session")
def aimock() -> Iterator[peers.Peer]:
    """aimock, which answers what ``tests/model_servers/aimock.json`` says."""
    with peers.Aimock() as server:
        yield server


@pytest.fixture(scope="session")
def _llmock_server() -> Iterator[peers.Llmock]:
    with peers.Llmock() as server:
        yield server


@pytest.fixture
def llmock(_llmock_server: peers.Llmock) -> peers.Llmock:
    """llmock, without faults until a test orders some."""
    _llmock_server.reset()
    return _llmock_server


# --- Files ----------------------------------------------------------------------


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the packages that draw, as Python's own search finds it."""

    class Finder(PathFinder):
        @classmethod
        def find_spec(cls, name: str, *where: Any) -> ModuleSpec | None:
            return None if name in drawing_packages.PACKAGES else super().find_spec(name, *where)

    finders = [Finder if one is PathFinder else one for one in sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)


@pytest.fixture
def file_server() -> Iterator[FileServer]:
    """A server on 127.0.0.1 that hands out whatever a test tells it to."""
    with FileServer() as server:
        yield server


# --- Live servers ---------------------------------------------------------------


def scripted_env(model_server: ScriptedModel) -> dict[str, str]:
    """The least that a server needs which asks the scripted model and lets clients with
    :data:`TOKEN` in."""
    tokens = {"ONEBOT_ACCESS_TOKEN": TOKEN, "HTTP_API_TOKEN": TOKEN}
    return {"UPSTREAM_ENDPOINT": model_server.url, "MODEL_NAME": "scripted", **tokens}


def _usual_env(model_server: ScriptedModel) -> dict[str, str]:
    return {
        **scripted_env(model_server),
        "UPSTREAM_API_KEY": "sk-test",
        "VISUAL_MODEL_NAME": "scripted-vision",
        "CODER_MODEL_NAME": "scripted-coder",
        "FETCH_ALLOW": "127.0.0.1",
    }


@pytest.fixture(scope="session")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """One server that tests share. Keep them apart by ``fresh_id()``; take ``start_server`` for
    anything else."""
    with LiveServer(_usual_env(model_server)) as server:
        yield server


@pytest.fixture
def start_server(model_server: ScriptedModel) -> Iterator[Callable[..., LiveServer]]:
    """Start servers of this test's own: ``start_server(MAX_ITERATIONS="2")``; an empty value unsets
    a default.

    ``program="daphne"`` starts daphne's own command instead of ``runserver``; ``fresh``
    and ``empty`` are as for :class:`LiveServer`.
    """
    with contextlib.ExitStack() as servers:

        def start(
            program: Program = "runserver", *, fresh: bool = False, empty: bool = False, **env: str
        ) -> LiveServer:
            wanted = _usual_env(model_server) | env
            return servers.enter_context(LiveServer(wanted, program, fresh=fresh, empty=empty))

        yield start


# --- Services -------------------------------------------------------------------


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a real Redis-compatible server that tests share."""
    with _services().RedisServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["PostgresServer"]:
    """A real PostgreSQL server; ``new_database()`` makes an empty database in it."""
    with _services().PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: "PostgresServer") -> Iterator[str]:
    """The address of an empty PostgreSQL database of this test's own."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def migrated_template(postgres_server: "PostgresServer", django_db_blocker: Any) -> str:
    """The address of a database that ``migrate`` has been over, for ``new_database()`` to copy."""
    from tests.agent.databases import migrated  # wants Django's models, which not all have loaded

    with django_db_blocker.unblock():
        return migrated(postgres_server)


@pytest.fixture
def migrated_url(postgres_server: "PostgresServer", migrated_template: str) -> Iterator[str]:
    """The address of a migrated PostgreSQL database of this test's own."""
    url = postgres_server.new_database(migrated_template)
    yield url
    postgres_server.drop_database(url)


def _services() -> Any:
    """``tests.services``, or a skip on a platform that its wheels are not made for."""
    return pytest.importorskip(
        "tests.services", reason="no server wheels for this platform", exc_type=ImportError
    )
