"""``manage.py doctor``: what it says of endpoints and servers as they are, good and bad."""

import asyncio
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agent.domain.endpoint import Endpoint
from agent.domain.manners import MarkdownStyle
from agent.llm.probing.probe import TOOL_NAME, probe_endpoint
from agent.models import Manners, ModelEndpoint
from frostproject.configuration import machine, private_files
from frostproject.configuration.networks import Networks
from frostproject.doctor import checks, diagnosis
from frostproject.doctor.checks import check_models, judge_report
from onebot.connections.handshake import hash_token
from onebot.models import Bot
from tests import zygote
from tests.conftest import TOKEN
from tests.environment import clean_environment
from tests.live_server import LiveServer, free_port
from tests.probed_model import reads_meter
from tests.scripted_model import ScriptedModel, call, drops, fails, hangs, returns
from tools.findings import Finding, FindingLevel

KEY = "sk-a-key-that-nobody-may-see"


def doctor(data_dir: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    fixed = {
        "FROST_DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "frostproject.settings",
        "LANGUAGE_CODE": "en",
    }
    command = [sys.executable, "manage.py", "doctor", *arguments]
    return zygote.run(command, clean_environment(**(fixed | env)))


def levels(findings: Any) -> list[tuple[FindingLevel, str]]:
    return [(finding.level, finding.text) for finding in findings]


@pytest.fixture(autouse=True)
def _in_english(settings: Any) -> None:
    settings.LANGUAGE_CODE = "en"


# --- The command ----------------------------------------------------------------


def test_a_new_installation_that_was_never_started_is_not_wrong(tmp_path):
    said = doctor(tmp_path / "data", WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}")
    assert said.returncode == 0, said.stdout
    assert "NOTE There is no database yet" in said.stdout
    assert "NOTE No server answers at" in said.stdout
    assert not (tmp_path / "data" / "frostagent.sqlite3").exists()


def test_a_running_server_passes_every_check_and_no_secret_is_shown(start_server, model):
    model.answer_with(reads_meter)
    token = "a-token-nobody-may-see"
    secrets = {"ONEBOT_ACCESS_TOKEN": token, "HTTP_API_TOKEN": token[::-1], "UPSTREAM_API_KEY": KEY}
    server = start_server(**secrets)
    said = doctor(
        server.data_dir, "--url", server.url, **(server.env | {"WS_LISTEN_ADDR": "127.0.0.1:1234"})
    )
    assert (said.returncode, said.stderr) == (0, ""), said.stdout
    assert {line[:5] for line in said.stdout.partition("\n\n")[0].splitlines()} == {"OK   "}
    for text in (
        "The model scripted @",
        "token is let in",
        "Large frames (pictures) pass",
        "A wrong token is refused",
    ):
        assert text in said.stdout
    assert f"URL: {server.ws_url}" in said.stdout
    assert not [secret for secret in secrets.values() if secret in said.stdout]


def test_something_wrong_gives_status_1_and_is_said_last(tmp_path):
    said = doctor(
        tmp_path / "data", ONEBOT_ACCESS_TOKEN="short", WS_LISTEN_ADDR=f"127.0.0.1:{free_port()}"
    )
    assert said.returncode == 1
    assert "FAIL ONEBOT_ACCESS_TOKEN can be guessed." in said.stdout
    assert said.stdout.endswith("begin with FAIL.\n")


def test_an_address_that_is_none_is_refused(tmp_path):
    said = doctor(tmp_path / "data", "--url", "localhost:1234")
    assert said.returncode == 1
    assert "--url wants an address" in said.stderr


# --- Models ---------------------------------------------------------------------


def endpoint(url: str, seconds: float = 20, **values: Any) -> list[Finding]:
    asked = Endpoint(url, (KEY,), "scripted", environment="UPSTREAM", **values)
    return list(judge_report(asyncio.run(probe_endpoint(asked, question_seconds=seconds))))


def test_a_model_is_asked_what_only_a_tool_knows_and_sent_the_result(model):
    model.answer_with(reads_meter)
    assert [found.level for found in endpoint(model.url)] == [FindingLevel.OK]
    first, second = model.requests
    assert first.tool_names == second.tool_names == [TOOL_NAME]
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("answers", "text", "advice"),
    [
        ([fails(401, message=f"bad key {KEY}")], "refuses the key", "UPSTREAM_API_KEY"),
        ([fails(404, message="The model `x` does not exist")], "this model", "MODEL_NAME"),
        ([fails(400)], "refuses the question", "MODEL_NAME"),
        ([fails(400, message="x does not support tools"), "OK"], "tools are offered", "function"),
        ([fails(402)], "out of money", "Top it up"),
        ([fails(429), fails(429)], "over its limit", "provider"),
        ([fails(503), fails(503)], "has trouble", "try later"),
        ([returns(b"<html>")], "web page", "/v1"),
        ([returns({"error": "no"})], "refuses the question", "MODEL_NAME"),
        ([drops(), drops()], "cannot be reached", "UPSTREAM_ENDPOINT"),
        ([hangs()], "within the time limit", "still being loaded"),
        ([call(TOOL_NAME), fails(400)], "refused the tool's result", "thinking"),
    ],
)
def test_each_way_an_endpoint_fails_is_explained(
    model: ScriptedModel, answers: list[Any], text: str, advice: str
):
    model.script(answers)
    (found,) = endpoint(model.url, seconds=0.2 if "time limit" in text else 20)
    assert found.level is FindingLevel.FAIL
    assert text in found.text
    assert advice in found.advice
    assert KEY not in found.text + found.advice


def test_a_model_that_calls_no_tool_is_a_warning(model: ScriptedModel):
    model.script(["It is 7."])
    (found,) = endpoint(model.url)
    assert found.level is FindingLevel.WARN
    assert "did not call the tool" in found.text


def test_an_endpoint_where_nothing_listens_is_named_without_its_secrets():
    (found,) = endpoint(f"http://127.0.0.1:{free_port()}/v1?key={KEY}")
    assert "cannot be reached" in found.text
    assert KEY not in found.text


def test_a_coder_that_fails_is_a_warning(db, model, settings):
    settings.UPSTREAM_ENDPOINT = settings.CODER_ENDPOINT = model.url
    settings.MODEL_NAME, settings.CODER_MODEL_NAME = "good", "bad"
    model.answer_with(lambda asked: fails(404) if asked.model == "bad" else reads_meter(asked))
    assert [found.level for found in check_models()] == [FindingLevel.OK, FindingLevel.WARN]


def test_one_endpoint_of_two_for_chats_is_enough(db, model, settings):
    settings.UPSTREAM_ENDPOINT = f"http://127.0.0.1:{free_port()}/v1"
    ModelEndpoint.objects.create(name="second", base_url=model.url, model="scripted")
    model.answer_with(reads_meter)
    assert {found.level for found in check_models()} == {FindingLevel.OK, FindingLevel.WARN}
    ModelEndpoint.objects.all().delete()
    assert FindingLevel.FAIL in {found.level for found in check_models()}


def test_rows_are_asked_without_an_environment(db, model, settings):
    settings.UPSTREAM_ENDPOINT = settings.CODER_ENDPOINT = ""
    (note,) = check_models()
    assert note.level is FindingLevel.NOTE
    ModelEndpoint.objects.create(name="mine", base_url=model.url, model="scripted")
    model.answer_with(reads_meter)
    (found,) = check_models()
    assert "mine (scripted @" in found.text


# --- The server -----------------------------------------------------------------


def test_a_server_with_another_token_is_recognised(live):
    found = list(checks.probe_server(live.url, "another token"))
    assert found[-1].level is FindingLevel.FAIL
    assert "another ONEBOT_ACCESS_TOKEN" in found[-1].advice


def test_a_server_without_the_token_of_the_settings_is_recognised(start_server):
    server = start_server(ONEBOT_ACCESS_TOKEN="")
    found = list(checks.probe_server(server.url, TOKEN))
    assert found[-1].level is FindingLevel.FAIL
    assert "data folder" in found[-1].advice


def test_the_token_that_the_server_made_is_found_and_not_shown(start_server, model):
    model.answer_with(reads_meter)
    server = start_server(ONEBOT_ACCESS_TOKEN="", HTTP_API_TOKEN="", TRUST_LOOPBACK="")
    token = (server.data_dir / "onebot_access_token").read_text()
    said = doctor(
        server.data_dir, "--url", server.url, **(server.env | {"WS_LISTEN_ADDR": "127.0.0.1:1234"})
    )
    assert said.returncode == 0, said.stdout
    assert "token is let in" in said.stdout
    assert f"Token: what is in the file {server.data_dir / 'onebot_access_token'}" in said.stdout
    assert token not in said.stdout


def test_a_probe_leaves_nothing_on_record(live: LiveServer):
    before = (
        live.rows("SELECT count(*) AS bots FROM onebot_bot"),
        live.rows("SELECT count(*) AS events FROM onebot_clientevent"),
    )
    assert {found.level for found in checks.probe_server(live.url, TOKEN)} == {FindingLevel.OK}
    after = (
        live.rows("SELECT count(*) AS bots FROM onebot_bot"),
        live.rows("SELECT count(*) AS events FROM onebot_clientevent"),
    )
    assert after == before


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a web server that is not ours."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_another_program_on_the_port_is_recognised(stranger):
    (found,) = checks.probe_server(stranger, TOKEN)
    assert found.level is FindingLevel.FAIL
    assert "Something else answers" in found.text


# --- This machine ---------------------------------------------------------------


def test_placeholders_of_the_prompt_that_need_a_value_are_listed():
    (found,) = diagnosis.check_prompt(
        '{date} {topic} {tool:x} {hint?} {"a": 1} { topic } {app:mood} {topic}'
    )
    assert (found.level, found.text.partition(": ")[2]) == (
        FindingLevel.NOTE,
        "{topic}, { topic }, {app:mood}",
    )
    assert list(diagnosis.check_prompt('{date} {"a": 1}')) == []


@pytest.mark.django_db
def test_an_admin_whose_password_is_the_name_is_a_failure():
    User.objects.create_superuser("admin", "", "admin")
    User.objects.create_superuser("boss", "", "a much longer one")
    assert levels(diagnosis.check_database())[-2:] == [
        (FindingLevel.OK, "Admin account: admin, boss"),
        (FindingLevel.FAIL, "The password of the admin account admin is its name."),
    ]


@pytest.mark.django_db
def test_an_installation_without_an_admin_is_warned():
    assert [found.level for found in diagnosis.check_database()] == [
        FindingLevel.OK,  # the database
        FindingLevel.OK,  # the time zone
        FindingLevel.WARN,
    ]


@pytest.mark.django_db
def test_pictures_that_nothing_draws_are_a_warning_with_the_command(without_drawing):
    assert list(diagnosis.check_drawing()) == []
    Manners.objects.create(name="drawn", markdown=MarkdownStyle.PICTURE)
    (found,) = diagnosis.check_drawing()
    assert found.level is FindingLevel.WARN
    assert "make drawing (or: python manage.py install_drawing)" in found.advice


def test_a_data_folder_that_cannot_be_written_is_a_failure(tmp_path):
    (found,) = diagnosis.check_data_folder(tmp_path / "missing")
    assert found.level is FindingLevel.FAIL
    assert "missing" in found.text


def test_a_secret_key_that_others_can_read_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(
        private_files, "_database_files", list
    )  # the suite's own is none of this folder
    key = tmp_path / "secret_key"
    key.write_text("x")
    key.chmod(0o644)
    assert [found.advice for found in diagnosis.check_file_access(tmp_path, tmp_path / ".env")] == [
        f"chmod go= {key}"
    ]


@pytest.mark.parametrize("token", ["short", "ChangeMe"])
def test_a_token_that_can_be_guessed_is_a_failure(settings, token):
    settings.ONEBOT_ACCESS_TOKEN = token
    (found,) = diagnosis.check_token_strength()
    assert found.level is FindingLevel.FAIL
    assert token not in found.text + found.advice


def findings(settings: Any, **changes: Any) -> list[tuple[FindingLevel, str]]:
    for name, value in changes.items():
        setattr(settings, name, value)
    return levels(diagnosis.check_exposure())


def test_a_file_of_a_token_that_others_can_read_is_a_warning(tmp_path, monkeypatch):
    path = tmp_path / "http_api_token"
    path.write_text("x")
    path.chmod(0o640)
    monkeypatch.setattr(machine, "token_sources", {"HTTP_API_TOKEN": path})
    assert [(found.level, found.advice) for found in diagnosis.check_token_files()] == [
        (FindingLevel.WARN, f"chmod 600 {path}")
    ]


def test_what_is_open_is_a_warning_and_what_is_closed_is_none(settings):
    assert {
        level
        for level, _ in findings(
            settings, WS_LISTEN_ADDR=("0.0.0.0", 1), ALLOWED_HOSTS=["localhost"]
        )
    } == {FindingLevel.OK}
    assert warned(findings(settings, TRUST_LOOPBACK=True), "TRUST_LOOPBACK is on")
    assert warned(findings(settings, ADMIN_NETWORKS=Networks.parse(["*"])), "ADMIN_NETWORKS is *")
    assert warned(
        findings(settings, ADMIN_NETWORKS=Networks.parse(["private", "203.0.113.0/24"])),
        "in clear to networks",
    )
    assert not warned(findings(settings, WS_LISTEN_ADDR=("127.0.0.1", 1)), "in clear to networks")


def test_addresses_with_and_without_https_are_a_warning(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://bot.example.org", "http://192.168.1.5:1234"]
    assert warned(findings(settings), "without https (http://192.168.1.5:1234)")
    assert any("Behind a proxy" in text for _, text in findings(settings))


def warned(found: list[tuple[FindingLevel, str]], words: str) -> bool:
    return any(level is FindingLevel.WARN and words in text for level, text in found)


@pytest.mark.django_db
def test_accounts_with_a_token_of_their_own_are_named():
    assert list(diagnosis.check_account_tokens()) == []
    Bot.objects.create(self_id="10001", token_hash=hash_token("a token of its own"))
    assert "10001" in next(diagnosis.check_account_tokens()).text


def test_a_redis_that_does_not_answer_is_a_failure(redis_url):
    assert levels(diagnosis.check_channel_layer(redis_url))[-1][0] is FindingLevel.OK
    assert (
        levels(diagnosis.check_channel_layer(f"redis://127.0.0.1:{free_port()}/0"))[-1][0]
        is FindingLevel.FAIL
    )


def test_a_warning_of_the_system_checks_is_passed_on(settings):
    settings.UPSTREAM_ENDPOINT, settings.MODEL_NAME = "http://127.0.0.1:1/v1", ""
    assert (FindingLevel.WARN, "UPSTREAM_ENDPOINT is set and MODEL_NAME is empty.") in levels(
        diagnosis.run_system_checks()
    )


def test_the_client_is_told_every_address_of_a_server_open_to_others(settings):
    settings.WS_LISTEN_ADDR = ("0.0.0.0", 4321)
    lines = list(diagnosis.client_setting_lines(""))
    assert "URL: ws://127.0.0.1:4321/ws/frostagent" in lines
    assert not any("[::1]" in line for line in lines)
    assert (
        next(diagnosis.client_setting_lines("https://bot.example.org"))
        == "URL: wss://bot.example.org/ws/frostagent"
    )
