"""One server for many tests of accounts, whose second factors and sessions are forgotten after
each."""

import sqlite3
from collections.abc import Iterator

import pytest

from tests.conftest import scripted_env
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

START_SECONDS = 120
FORGOTTEN = (
    "frostproject_authenticatorapp",
    "frostproject_recoverycode",
    "frostproject_recoverycodes",
    "frostproject_failedsignins",
    "frostproject_signinrecord",
    "django_otp_webauthn_webauthnattestation",
    "django_otp_webauthn_webauthncredential",
    "django_session",
)


@pytest.fixture(scope="module")
def started(model_server: ScriptedModel) -> Iterator[LiveServer]:
    server = LiveServer(scripted_env(model_server))
    try:
        yield server.start(START_SECONDS)
    finally:
        server.remove()


@pytest.fixture
def server(started: LiveServer) -> Iterator[LiveServer]:
    yield started
    change(started, *(f"DELETE FROM {table}" for table in FORGOTTEN))


def change(server: LiveServer, *statements: str) -> None:
    """Change the server's SQLite file beside it."""
    connection = sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=30)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
