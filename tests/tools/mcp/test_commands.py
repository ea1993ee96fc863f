"""Which programs may be run as MCP servers, with which variables, and whose word counts."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from pytest_django import Settings

from tools.mcp.settings import (
    check_command,
    check_environment,
    check_program_exists,
    may_run_commands,
)


@pytest.fixture(autouse=True)
def _allowed(settings: Settings) -> None:
    settings.LANGUAGE_CODE = "en"
    settings.MCP_ALLOWED_COMMANDS = ["npx", "/opt/mcp/server"]


@pytest.mark.parametrize("command", ["npx", "/opt/mcp/server"])
def test_a_program_of_the_list_may_be_run_with_any_arguments(command: str):
    assert check_command(command, ["-y", "; rm -rf ~", "$(id)", "天气", ""]) == ""


@pytest.mark.parametrize(
    "command",
    [
        "node",
        "npx ",
        " npx",
        "NPX",
        "npx -y x",
        "/usr/bin/npx",
        "server",
        "/opt/mcp/../mcp/server",
        "/opt/mcp/server/",
        "npx;id",
    ],
)
def test_a_program_that_is_written_otherwise_is_not_on_the_list(command: str):
    assert "is not among the programs" in check_command(command, [])


@pytest.mark.parametrize("command", ["./npx", "bin/npx", "../npx", "~/npx"])
def test_a_relative_path_is_refused_even_on_the_list(settings: Settings, command: str):
    settings.MCP_ALLOWED_COMMANDS = [command]
    assert "absolute path" in check_command(command, [])


@pytest.mark.parametrize("part", ["a\nb", "a\0", "\x1b[2J", "\x7f", "\x9b", "\ud800", 7, None])
def test_control_characters_and_what_is_no_text_are_refused(part: object):
    assert "control characters" in check_command("npx", [part])
    if isinstance(part, str):
        assert "control characters" in check_command(part, [])


def test_no_program_is_allowed_by_default_and_the_sentence_says_what_to_put_where(
    settings: Settings,
):
    assert check_command("uvx", []).endswith(": MCP_ALLOWED_COMMANDS=npx,/opt/mcp/server,uvx")
    settings.MCP_ALLOWED_COMMANDS = []
    assert check_command("npx", []).endswith(
        "put this into .env and restart: MCP_ALLOWED_COMMANDS=npx"
    )
    assert "Name the program" in check_command("", [])
    assert "comma" in check_command("a,b", [])


def test_a_program_that_is_not_there_is_named():
    assert check_program_exists("sh") == check_program_exists("/bin/sh") == ""
    assert "no-such-program" in check_program_exists("no-such-program")
    assert "/bin/nothing" in check_program_exists("/bin/nothing")


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "Path",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "BASH_ENV",
    ],
)
def test_a_variable_that_would_run_other_code_is_refused(name: str):
    assert name in check_environment({"API_KEY": "x", name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("A B", ""), ("", ""), ("A=B", ""), ("1A", ""), ("钥匙", ""), ("A", "\0"), ("A", "\ud800")],
)
def test_what_is_no_variable_is_refused(name: str, value: str):
    assert check_environment({"GOOD_1": "a\nb", "_": ""}) == ""
    assert "not a variable" in check_environment({name: value})


def test_only_superusers_who_were_given_the_permission_may_run_commands(db: None):
    permission = Permission.objects.get(codename="run_commands")
    plain = User.objects.create_user("plain")
    chief = User.objects.create_superuser("chief")
    assert chief.has_perm("tools.run_commands")
    assert not may_run_commands(chief)
    assert not may_run_commands(AnonymousUser())
    plain.user_permissions.add(permission)
    assert not may_run_commands(plain)
    chief.user_permissions.add(permission)
    assert may_run_commands(chief)
    chief.is_active = False
    assert not may_run_commands(chief)


def test_a_group_can_give_the_permission_to_a_superuser(db: None):
    group = Group.objects.create(name="wardens")
    group.permissions.add(Permission.objects.get(codename="run_commands"))
    chief = User.objects.create_superuser("chief")
    chief.groups.add(group)
    assert may_run_commands(chief)
