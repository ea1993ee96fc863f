"""Servers that the end-to-end tests share, beside ``live`` with its default settings."""

import contextlib
import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import TOKEN, scripted_env
from tests.e2e import weather
from tests.e2e.brisk import BriskServer, running
from tests.e2e.later_server import LaterServer
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel


@pytest.fixture(scope="session")
def impatient(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server on which outcomes become unknown while a test waits: it waits a moment for clients
    where it would wait a minute."""
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "MODEL_NAME": "scripted",
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "RUN_TIMEOUT": "3",
    }
    limits = dict.fromkeys(["send", "lost_socket", "tool_message"], 1.5) | {"heartbeat": 0.5}
    with LiveServer(env, limits=limits) as server:
        yield server


@pytest.fixture
def start_later(model_server: ScriptedModel) -> Iterator[Callable[..., LaterServer]]:
    """Start servers with tools whose outcome comes later, each with a data folder of its own."""
    with contextlib.ExitStack() as servers:

        def start(**env: str) -> LaterServer:
            return servers.enter_context(LaterServer(scripted_env(model_server) | env))

        yield start


@pytest.fixture(scope="session")
def contrary(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server under daphne's own command whose settings are the opposite of the defaults.

    It wants no token of this machine's programs, has listed origins, wake words, quotes instead of
    mentions, narrow limits, and speaks English.
    """
    env = {
        "UPSTREAM_ENDPOINT": f"{model_server.url}/chat/completions",
        "MODEL_NAME": "scripted",
        "CODER_MODEL_NAME": "scripted-coder",
        "TRUST_LOOPBACK": "true",
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "WS_ALLOWED_ORIGINS": "https://panel.example, trusted.example:8443",
        "BOT_NAME": "Frosty",
        "BOT_ALIASES": "小霜, f.r.",
        "ENABLE_AT_IN_GROUP_MSG": "false",
        "ENABLE_REPLY_IN_GROUP_MSG": "true",
        "LANGUAGE_CODE": "en",
        "SYSTEM_PROMPT": "You are Frosty.",
        "LLM_TIMEOUT": "4",
        "MAX_ITERATIONS": "2",
        "MAX_CONTEXT_MESSAGES": "6",
        "MAX_CONTEXT_CHARS": "1000",
    }
    with LiveServer(env, "daphne") as server:
        yield server


# --- Several processes ----------------------------------------------------------


@pytest.fixture(scope="module")
def environment(
    model_server: ScriptedModel,
    postgres_server,
    migrated_template: str,
    redis_url,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """What the servers of a module share: a migrated database, a channel layer, a model."""
    url = postgres_server.new_database(migrated_template)
    yield {
        "UPSTREAM_ENDPOINT": model_server.url,
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        **weather.settings(tmp_path_factory.mktemp("plugins")),
    }
    postgres_server.drop_database(url)


@pytest.fixture(scope="module")
def installed(environment) -> Iterator[tuple[BriskServer, BriskServer]]:
    """Two installations that share everything but the machine; the key was copied, as the guides
    say."""
    servers, key = (BriskServer(environment), BriskServer(environment)), secrets.token_urlsafe(50)
    for server in servers:
        server.data_dir.mkdir(mode=0o700)
        (server.data_dir / "secret_key").write_text(key)
        (server.data_dir / "secret_key").chmod(0o600)
    yield servers
    for server in servers:
        server.remove()


@pytest.fixture
def first(installed) -> BriskServer:
    return running(installed[0])


@pytest.fixture
def second(installed) -> BriskServer:
    return running(installed[1])
