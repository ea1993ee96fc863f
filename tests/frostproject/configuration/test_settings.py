"""The settings module, run with an environment of the test's own."""

import runpy
from collections.abc import Callable
from typing import Any

import pytest

from frostproject.configuration.env import InvalidSetting
from frostproject.configuration.networks import Networks
from tests.environment import SETTINGS

Run = Callable[..., dict[str, Any]]

DEFAULTS = {
    "UPSTREAM_ENDPOINT": "",
    "UPSTREAM_API_KEY": "",
    "MODEL_NAME": "",
    "VISUAL_MODEL_NAME": "",
    "CODER_MODEL_NAME": "qwen-coder-plus",
    "VISION_MODE": "describe",
    "TRANSCRIBE_MODEL_NAME": "",
    "EMBEDDING_MODEL_NAME": "",
    "MCP_ALLOWED_COMMANDS": [],
    "MCP_SERVER_TOKEN": "",
    "SYSTEM_PROMPT": "你是一个乐于助人的助手。",
    "MAX_ITERATIONS": 5,
    "MAX_CONTEXT_MESSAGES": 20,
    "MAX_CONTEXT_CHARS": 24000,
    "LLM_TIMEOUT": 120,
    "RUN_TIMEOUT": 300,
    "WS_LISTEN_ADDR": ("0.0.0.0", 1234),
    "WS_ALLOWED_ORIGINS": [],
    "ADMIN_NETWORKS": Networks.parse(["private"]),
    "TRUST_LOOPBACK": False,
    "ENABLE_AT_IN_GROUP_MSG": True,
    "ENABLE_REPLY_IN_GROUP_MSG": False,
    "GROUP_REPLY_ON_MENTION": True,
    "BOT_NAME": "",
    "BOT_ALIASES": [],
    "FETCH_ALLOW": [],
    "DEBUG": False,
    "LANGUAGE_CODE": "zh-hans",
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the settings file with these variables."""

    def run(**variables: str) -> dict[str, Any]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(SETTINGS))

    return run


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_setting_that_nobody_made_has_its_documented_default(run, name):
    assert run()[name] == DEFAULTS[name]


def test_the_coder_uses_upstream_until_it_has_an_endpoint_of_its_own(run):
    found = run(UPSTREAM_ENDPOINT="http://up/v1", UPSTREAM_API_KEY="k")
    assert (found["CODER_ENDPOINT"], found["CODER_API_KEY"]) == ("http://up/v1", "k")
    found = run(CODER_ENDPOINT="http://coder/v1", CODER_API_KEY="c")
    assert (found["CODER_ENDPOINT"], found["CODER_API_KEY"]) == ("http://coder/v1", "c")


def test_the_database_is_a_file_in_the_data_folder_unless_named(run, tmp_path):
    found = run(FROST_DATA_DIR=str(tmp_path / "mine"))
    assert found["DATABASES"]["default"]["NAME"] == str(tmp_path / "mine" / "frostagent.sqlite3")
    found = run(DATABASE_URL="postgres://h/frost")
    assert found["DATABASES"]["default"]["NAME"] == "frost"


def test_a_redis_address_makes_the_channel_layer_shared(run):
    assert "InMemory" in run()["CHANNEL_LAYERS"]["default"]["BACKEND"]
    layer = run(REDIS_URL="redis://127.0.0.1:1/0")["CHANNEL_LAYERS"]["default"]
    assert "Redis" in layer["BACKEND"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "perhaps"),
        ("ENABLE_AT_IN_GROUP_MSG", "perhaps"),
        ("MAX_ITERATIONS", "0"),
        ("MAX_ITERATIONS", "lots"),
        ("MAX_CONTEXT_MESSAGES", "many"),
        ("MAX_CONTEXT_MESSAGES", "1"),
        ("LLM_TIMEOUT", "-1"),
        ("LLM_TIMEOUT", "soon"),
        ("RUN_TIMEOUT", "-1"),
        ("VISION_MODE", "blind"),
        ("WS_LISTEN_ADDR", "everywhere"),
        ("WS_LISTEN_ADDR", "0.0.0.0:99999"),
        ("UPSTREAM_ENDPOINT", "api.example.com"),
        ("DATABASE_URL", "mysql://h/db"),
        ("REDIS_URL", "http://h"),
        ("LANGUAGE_CODE", "tlh"),
        ("ADMIN_NETWORKS", "home"),
        ("ADMIN_NETWORKS", "10.0.0.0/33"),
        ("ADMIN_NETWORKS", "192.168.1.1, 300.1.1.1"),
        ("ADMIN_NETWORKS", "**"),
        ("TRUST_LOOPBACK", "maybe"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name(run, name, value):
    with pytest.raises(InvalidSetting, match=f"^{name}: "):
        run(**{name: value})


@pytest.mark.parametrize(
    "name",
    [
        "MEDIA_KEEP_GIB",
        "MEDIA_FREE_GIB",
        "MEDIA_PERSON_MIB_PER_DAY",
        "RECORD_KEEP_DAYS",
        "EVENT_KEEP_DAYS",
    ],
)
def test_a_limit_that_cannot_be_meant_is_named(run, name):
    for value in ("-1", "much", "1e99", "nan"):
        with pytest.raises(InvalidSetting, match=f"^{name}: "):
            run(**{name: value})
