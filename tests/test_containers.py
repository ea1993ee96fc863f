"""The files that make containers and services: what is promised of them, and the tokens of
clients."""

import codecs
import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.environment import PROJECT

DEPLOY = PROJECT / "deploy"
COMPOSE = yaml.safe_load((PROJECT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CLIENTS = ("napcat", "snowluma", "llbot")
OURS = [name for name, service in SERVICES.items() if "build" in service]


def dockerfile() -> str:
    return (PROJECT / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", OURS)
def test_what_we_run_in_a_container_may_write_its_volumes_and_nothing_else(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp"]
    assert not {"cap_add", "privileged", "user"} & service.keys()


def test_the_image_has_a_pinned_base_a_user_and_a_health():
    assert re.search(r"^ARG FROST_BASE=python:3\.\d+\.\d+-slim-\w+$", dockerfile(), re.MULTILINE)
    assert re.search(r"^USER 10001:10001$", dockerfile(), re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*deploy/ready\.py", dockerfile(), re.MULTILINE)


def test_ports_are_published_to_this_machine_alone():
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(published) >= 5
    assert [p for p in published if not p.startswith(("127.0.0.1:", "${FROST_BIND:-127"))] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_starts_after_its_token_is_entered_and_the_server_is_ready(client):
    setup = SERVICES[f"{client}-setup"]
    assert SERVICES[client]["depends_on"] == {
        f"{client}-setup": {"condition": "service_completed_successfully"}
    }
    assert setup["depends_on"] == {"server": {"condition": "service_healthy"}}
    assert SERVICES[client]["profiles"] == setup["profiles"] == [client]
    entered, kept = (
        {volume.split(":")[0] for volume in service["volumes"]}
        for service in (setup, SERVICES[client])
    )
    assert entered - {"data"} <= kept
    assert "data" not in kept, "the client could read the record"


@pytest.mark.parametrize("client", CLIENTS)
def test_the_image_of_a_client_does_not_take_the_volumes_in_which_its_token_is_entered(client):
    entered = {volume.split(":")[0] for volume in SERVICES[f"{client}-setup"]["volumes"]}
    shared = [v for v in SERVICES[client]["volumes"] if v.split(":")[0] in entered]
    assert shared
    assert [volume for volume in shared if not volume.endswith(":nocopy")] == []


def test_every_volume_is_named_and_no_value_is_a_secret():
    mounted = {v.split(":")[0] for one in SERVICES.values() for v in one.get("volumes", ())}
    assert mounted == set(COMPOSE["volumes"])
    values = {
        name: value
        for service in SERVICES.values()
        for name, value in service.get("environment", {}).items()
        if re.search(r"TOKEN|PASS|KEY", name)
    }
    assert set(values.values()) <= {None, "${POSTGRES_PASSWORD:-}"}


def test_the_image_takes_nothing_that_is_not_named():
    named = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in named
    assert {"!.env", "!data", "!tests", "!.git"} & set(named) == set()


# --- The token of a client ------------------------------------------------------


def enter(client: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "onebot_access_token").write_text('made-"here"\n')
    (folder / "client").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "deploy/enter_token.py", client, str(folder / "client")],
        cwd=PROJECT,
        env={**os.environ, "ONEBOT_ACCESS_TOKEN": "", "QQ": "", **environment}
        | {"FROST_DATA_DIR": str(folder / "data")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("client", "file", "list_of_connections", "key"),
    [
        ("napcat", "templates/frost.json", ("network", "websocketClients"), "token"),
        ("snowluma", "config/onebot.json", ("networks", "wsClients"), "accessToken"),
        ("llbot", "config_10001.json", ("ob11", "connect"), "token"),
    ],
)
def test_url_and_token_are_entered_before_a_client_starts(
    tmp_path, client, file, list_of_connections, key
):
    assert enter(client, tmp_path, QQ="10001").returncode == 0
    written = json.loads((tmp_path / "client" / file).read_text())
    part, name = list_of_connections
    (connection,) = written[part][name]
    assert connection["url"] == "ws://server:1234/ws/frostagent"
    assert connection[key] == 'made-"here"'
    assert connection.get("enable", connection.get("enabled")) is True


def test_a_new_token_reaches_what_an_account_has_of_its_own_and_the_rest_stays(tmp_path):
    enter("napcat", tmp_path)
    own = tmp_path / "client" / "config" / "onebot11_10001.json"
    own.parent.mkdir()
    theirs = {"url": "ws://elsewhere/", "token": "theirs"}
    ours = {"url": "ws://server:1234/ws/frostagent", "token": "old", "name": "改名"}
    own.write_text(json.dumps({"network": {"websocketClients": [ours, theirs]}, "timeout": 3}))
    enter("napcat", tmp_path, ONEBOT_ACCESS_TOKEN="chosen")
    assert json.loads(own.read_text()) == {
        "network": {"websocketClients": [{**ours, "token": "chosen"}, theirs]},
        "timeout": 3,
    }


def test_a_new_token_reaches_a_file_that_belongs_to_the_user_of_the_client(tmp_path):
    enter("napcat", tmp_path)
    made = tmp_path / "client" / "templates" / "frost.json"
    as_it_was = tmp_path / "theirs"
    os.link(made, as_it_was)  # whoever writes into their file would be seen here
    enter("napcat", tmp_path, ONEBOT_ACCESS_TOKEN="chosen")
    assert '"chosen"' in made.read_text()
    assert '"chosen"' not in as_it_was.read_text()
    assert list(made.parent.iterdir()) == [made]


def test_a_file_that_is_no_json_is_told_and_left(tmp_path):
    enter("snowluma", tmp_path)
    own = tmp_path / "client" / "config" / "onebot_10001.json"
    own.write_text("{token: 'json5'}")
    said = enter("snowluma", tmp_path)
    assert said.returncode == 0
    assert "enter the token there by hand" in said.stderr
    assert own.read_text() == "{token: 'json5'}"


def test_a_volume_that_cannot_be_written_is_told_in_a_line(tmp_path):
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "templates").write_text("no folder")
    said = enter("napcat", tmp_path)
    assert said.returncode == 1
    assert len(said.stderr.splitlines()) == 1, said.stderr
    assert "templates" in said.stderr


def test_llbot_wants_a_number_and_says_so(tmp_path):
    said = enter("llbot", tmp_path, QQ="../../x")
    assert said.returncode == 1
    assert "set QQ in .env" in said.stderr
    assert list((tmp_path / "client").iterdir()) == []


# --- The health of a container ----------------------------------------------------


@pytest.mark.parametrize(("status", "ends_with"), [(200, 0), (503, 1)])
def test_a_container_is_healthy_while_the_server_is_ready(status, ends_with):
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/ready" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.handle_request, daemon=True).start()
        assert is_ready(server.server_port) == ends_with
    assert is_ready(server.server_port) == 1, "nothing listens"


def is_ready(port: int) -> int:
    ready = [sys.executable, "-IS", str(DEPLOY / "ready.py"), str(port)]
    return subprocess.run(ready, capture_output=True, timeout=120, check=False).returncode


# --- systemd ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["frostagent.service", "frostagent-backup.service"])
def test_a_service_runs_as_its_own_user_and_writes_its_data_alone(name):
    unit = (DEPLOY / name).read_text(encoding="utf-8")
    for line in (
        "User=frost",
        "ProtectSystem=strict",
        "ReadWritePaths=/var/lib/frostagent",
        "NoNewPrivileges=true",
        "CapabilityBoundingSet=",
    ):
        assert f"\n{line}\n" in unit


def test_windows_powershell_reads_its_script_as_what_it_is():
    assert (DEPLOY / "windows.ps1").read_bytes().startswith(codecs.BOM_UTF8)


@pytest.mark.parametrize("script", ["deploy/install.sh", ".ci/container"])
def test_a_script_can_be_run_and_is_one(script):
    assert os.access(PROJECT / script, os.X_OK)
    assert subprocess.run(["sh", "-n", str(PROJECT / script)], check=False).returncode == 0
