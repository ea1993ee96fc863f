"""The mcpServers JSON of other programs: read in its many spellings, refused where it cannot be
meant, written again."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tools.mcp.config_json import (
    ConfigUnreadable,
    ServerConfig,
    find_placeholders,
    parse_mcp_servers,
    render_mcp_servers,
)
from tools.secrets.masked import (
    export_arguments,
    export_placeholder,
    export_url,
    mask_command,
    mask_url,
)


@pytest.fixture(autouse=True, scope="module")
def _in_english() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.LANGUAGE_CODE", "en")
        yield


def one(entry: Any, name: str = "s") -> ServerConfig:
    (config,) = parse_mcp_servers(json.dumps({"mcpServers": {name: entry}}))
    return config


def refusal(text: str) -> str:
    with pytest.raises(ConfigUnreadable) as raised:
        parse_mcp_servers(text)
    return str(raised.value)


# --- Spellings ------------------------------------------------------------------


def test_a_program_is_read_as_claude_desktop_writes_it():
    entry = {"command": "npx", "args": ["-y", "server", 7, True], "env": {"KEY": "a=b", "N": 1}}
    assert one(entry, " files ") == ServerConfig(
        "files",
        {
            "transport": "stdio",
            "command": "npx",
            "arguments": ["-y", "server", "7", "true"],
            "environment": {"KEY": "a=b", "N": "1"},
            "url": "",
            "headers": {},
        },
    )


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"a": {"url": "https://a.test/mcp"}}},
        {"servers": {"a": {"type": "http", "url": "https://a.test/mcp"}}, "inputs": []},
        {
            "mcp": {"servers": {"a": {"type": "http", "url": "https://a.test/mcp"}}},
            "editor.fontSize": 12,
        },
        {"a": {"serverUrl": "https://a.test/mcp"}},
        {
            "mcpServers": {
                "x9": {"name": "a", "baseUrl": "https://a.test/mcp", "type": "streamableHttp"}
            }
        },
        [{"name": "a", "transport": "streamable_http", "url": "https://a.test/mcp"}],
        {"mcpServers": [{"name": "a", "httpUrl": "https://a.test/mcp"}]},
        {"name": "a", "url": "https://a.test/mcp"},
    ],
)
def test_the_list_of_servers_is_found_wherever_programs_keep_it(document: Any):
    (config,) = parse_mcp_servers("\ufeff" + json.dumps(document))
    assert (config.name, config.values["transport"], config.values["url"]) == (
        "a",
        "streamable_http",
        "https://a.test/mcp",
    )
    assert config.problems == ()


@pytest.mark.parametrize(
    ("said", "transport"),
    [
        *[
            (word, "streamable_http")
            for word in ("http", "streamable-http", "streamableHttp", "streamable_http", "HTTP")
        ],
        *[("sse", "sse"), ("SSE", "sse"), ("stdio", "stdio"), ("local", "stdio")],
    ],
)
@pytest.mark.parametrize("key", ["type", "transport"])
def test_transports_are_known_in_all_their_spellings(key: str, said: str, transport: str):
    assert (
        one({key: said, "command": "npx", "url": "https://a.test/"}).values["transport"]
        == transport
    )


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("https://a.test/sse", "sse"),
        ("https://a.test/sse/?key=1", "sse"),
        ("https://a.test/mcp", "streamable_http"),
    ],
)
def test_a_url_without_a_type_is_taken_for_sse_where_it_ends_so(url: str, transport: str):
    config = one({"url": url})
    assert config.values["transport"] == transport
    assert bool(config.notes) == (transport == "sse")


def test_headers_may_be_a_list_of_lines():
    assert one({"url": "https://a.test/", "headers": ["Authorization: Bearer a:b"]}).values[
        "headers"
    ] == {"Authorization": "Bearer a:b"}


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        ({"disabled": True}, {"enabled": False}),
        ({"disabled": False}, {"enabled": True}),
        ({"isActive": False}, {"enabled": False}),
        ({"timeout": 90}, {"call_seconds": 90}),
        ({"timeout": 120_000}, {"call_seconds": 120}),
        ({"timeout": 0.5, "connectTimeout": 5}, {"call_seconds": 1, "connect_seconds": 5}),
        (
            {"includeTools": ["a*", "b"], "excludeTools": ["c"], "disabledTools": ["d"]},
            {"include": "a*\nb", "exclude": "c\nd"},
        ),
        ({"toolPrefix": "x_"}, {"name_prefix": "x_"}),
    ],
)
def test_settings_are_read_where_the_text_has_them(entry: dict[str, Any], values: dict[str, Any]):
    bare = one({"command": "npx"}).values
    assert one({"command": "npx"} | entry).values == bare | values


def test_placeholders_stay_as_they_are_and_are_found():
    config = one({"command": "npx", "args": ["${workspaceFolder}"], "env": {"KEY": "${input:key}"}})
    assert config.values["environment"] == {"KEY": "${input:key}"}
    assert config.notes == ()
    assert find_placeholders(config.values) == ["${input:key}", "${workspaceFolder}"]


def test_what_is_not_understood_is_named():
    assert one({"command": "npx", "cwd": "/", "autoApprove": [], "description": "d"}).notes == (
        "Not understood and left out: autoApprove, cwd",
    )


# --- Bad input ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1, column 1"),
        ('{\n "mcpServers": {},\n}', "line 3"),
        ("{} // no", "Comments"),
        ("[" * 100_000, "too deeply"),
        ('{"mcpServers": {"a": {"timeout": ' + "9" * 5000 + "}}}", "can be read"),
        ('{"a": {"command": "x"}, "a": {"command": "y"}}', "“a” stands twice"),
        ("{}", "no server"),
        ('{"mcpServers": {}}', "no server"),
        ('{"mcpServers": 7}', "“mcpServers” must be an object"),
        ('{"mcpServers": ["a"]}', "“mcpServers” must be an object"),
        ("[1]", "must be an object"),
        ('"text"', "must be an object"),
        ('{"command": "npx"}', "no list of servers"),
        (json.dumps({str(n): {"command": "x"} for n in range(501)}), "more than 500"),
    ],
)
def test_a_text_that_is_no_list_of_servers_is_refused_with_the_reason(text: str, words: str):
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "must be an object"),
        ({}, "neither a command nor a URL"),
        ({"command": "npx", "url": "https://a.test/"}, "“type” has to say"),
        ({"type": "ws", "url": "wss://a.test/"}, "“ws” is no transport"),
        ({"command": ["npx"]}, "“command” must be a text"),
        ({"command": "npx", "args": "-y x"}, "“args” must be a list"),
        ({"command": "npx", "args": [["x"]]}, "“args” must be a list"),
        ({"command": "npx", "env": ["KEY"]}, "“env” must be an object"),
        ({"command": "npx", "env": {"KEY": {"a": 1}}}, "“env” must be an object"),
        ({"url": "https://a.test/", "headers": "Authorization: x"}, "“headers” must be an object"),
        ({"command": "npx", "disabled": "no"}, "“disabled” must be true or false"),
        ({"command": "npx", "timeout": -1}, "“timeout” must be a number"),
        ({"command": "npx", "timeout": 10**400}, "“timeout” must be a number"),
        ({"command": "npx", "timeout": True}, "“timeout” must be a number"),
    ],
)
def test_a_server_that_cannot_be_read_has_a_problem_that_names_the_field(entry: Any, words: str):
    (problem,) = one(entry).problems
    assert words in problem


def test_one_bad_server_leaves_the_others_readable():
    good, bad = parse_mcp_servers(
        '{"mcpServers": {"good": {"command": "npx"}, "bad": {"command": 7}}}'
    )
    assert good.problems == ()
    assert bad.problems


def test_a_name_that_stands_twice_is_a_problem_of_both():
    configs = parse_mcp_servers('[{"name": "a", "command": "x"}, {"name": "a ", "command": "y"}]')
    assert [bool(config.problems) for config in configs] == [True, True]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "command",
                        "args",
                        "env",
                        "url",
                        "type",
                        "timeout",
                        "disabled",
                        "mcpServers",
                        "x",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_any_json_is_read_or_refused(document: Any):
    with contextlib.suppress(ConfigUnreadable):
        assert all(
            isinstance(config.name, str) for config in parse_mcp_servers(json.dumps(document))
        )


# --- Writing --------------------------------------------------------------------

FULL = {
    "enabled": False,
    "connect_seconds": 9,
    "call_seconds": 90,
    "include": "a*\nb",
    "exclude": "c",
    "name_prefix": "x_",
}


@pytest.mark.parametrize(
    "connection",
    [
        {
            "transport": "stdio",
            "command": "npx",
            "arguments": ["-y", "天气"],
            "environment": {"KEY": "v"},
            "url": "",
            "headers": {},
        },
        {
            "transport": "sse",
            "command": "",
            "arguments": [],
            "environment": {},
            "url": "https://a.test/s",
            "headers": {"X-Key": "v"},
        },
        {
            "transport": "streamable_http",
            "command": "",
            "arguments": [],
            "environment": {},
            "url": "https://a.test/sse",
            "headers": {},
        },
    ],
)
def test_what_is_written_is_read_again_as_it_was(connection: dict[str, Any]):
    config = ServerConfig("天气", connection | FULL)
    assert parse_mcp_servers(render_mcp_servers([config])) == [config]


# --- Masks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown", "handed"),
    [
        ("", "", ""),
        ("https://h.example", "https://h.example", "https://h.example"),
        ("https://H.example:443/", "https://h.example", "https://h.example/"),
        ("https://h.example/mcp", "https://h.example/••••", "https://h.example/${PATH}"),
        ("http://h:8080/mcp?k=hunter2", "http://h:8080/••••", "http://h:8080/${PATH}?k=${K}"),
        (
            "https://h.example/sse#token=abcdef",
            "https://h.example/••••",
            "https://h.example/${PATH}#${FRAGMENT}",
        ),
        ("https://h.example?sk-live-1", "https://h.example/••••", "https://h.example?${QUERY}"),
        ("https://h.example/?sk/live=1", "https://h.example/••••", "https://h.example/?${QUERY}"),
        ("https://user:pw@h.example/", "••••", "${URL}"),
        ("sk-live-in-the-wrong-field", "••••", "${URL}"),
        ("postgresql://user:hunter2@db/prod", "••••", "${URL}"),
    ],
)
def test_of_an_address_only_the_host_is_shown(url: str, shown: str, handed: str):
    assert (mask_url(url), export_url(url)) == (shown, handed)


@pytest.mark.parametrize(
    ("arguments", "shown", "handed"),
    [
        (
            ["--header", "Authorization: Bearer sk-1"],
            "npx --header ••••",
            ["--header", "${HEADER}"],
        ),
        (
            ["--api-key=sk-1", "--verbose"],
            "npx --api-key=•••• --verbose",
            ["--api-key=${API_KEY}", "--verbose"],
        ),
        (["-y", "@scope/server@2026.1.14"], "npx -y ••••", ["-y", "@scope/server@2026.1.14"]),
        (["mcp-remote", "https://h.example/x"], "npx •••• ••••", ["mcp-remote", "${ARGUMENT}"]),
        (["postgresql://user:hunter2@db/prod"], "npx ••••", ["${ARGUMENT}"]),
        (["--pat", "ghp_letters"], "npx --pat ••••", ["--pat", "${PAT}"]),
        (["-psecret", "API_KEY=secret"], "npx -p•••• ••••", ["-p${P}", "${ARGUMENT}"]),
        (
            ["--a key", "--", "-----BEGIN KEY"],
            "npx •••• •••• ••••",
            ["${ARGUMENT}", "${ARGUMENT}", "${ARGUMENT}"],
        ),
    ],
)
def test_of_arguments_only_names_of_options_are_shown(
    arguments: list[str], shown: str, handed: list[str]
):
    assert mask_command("/opt/secret-folder/npx", arguments) == shown
    assert export_arguments("npx", arguments) == handed
    assert "@scope" not in str(export_arguments("npx", arguments, names_package=False))
    assert "scope" not in str(export_arguments("docker", arguments))


@pytest.mark.parametrize(
    ("name", "written"),
    [("--api-key", "${API_KEY}"), ("X-Token", "${X_TOKEN}"), ("钥匙", "${SECRET}")],
)
def test_a_placeholder_says_what_belongs_there(name: str, written: str):
    assert export_placeholder(name) == written
