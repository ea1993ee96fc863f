"""Every reader of the environment: what it makes of a value, and that a wrong one is named."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from frostproject.configuration.env import Env, InvalidSetting, parse_database_url, parse_dotenv

WEB = ("http", "https")


def env(value: str | None = None) -> Env:
    return Env({} if value is None else {"NAME": value})


# --- Where values come from -----------------------------------------------------


def test_the_process_environment_wins_over_the_file():
    assert Env({"A": "process"}, {"A": "file", "B": "file"}).text("A") == "process"
    assert Env({"A": "process"}, {"A": "file", "B": "file"}).text("B") == "file"


def test_an_empty_process_value_hides_the_file_and_means_the_default():
    assert Env({"A": ""}, {"A": "file"}).text("A", "default") == "default"


def test_a_missing_file_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("FROM_PROCESS", "yes")
    assert Env.load(tmp_path / ".env").text("FROM_PROCESS") == "yes"


def test_the_file_may_begin_with_a_byte_order_mark_and_hold_chinese(tmp_path):
    file = tmp_path / ".env"
    file.write_text("FIRST_LINE=霜\nPROMPT=你是一个乐于助人的助手。\r\n", encoding="utf-8-sig")
    loaded = Env.load(file)
    assert (loaded.text("FIRST_LINE"), loaded.text("PROMPT")) == ("霜", "你是一个乐于助人的助手。")


def test_a_file_in_another_encoding_is_named(tmp_path: Path):
    file = tmp_path / ".env"
    file.write_bytes("SYSTEM_PROMPT=你好".encode("gbk"))
    with pytest.raises(InvalidSetting, match=r"\.env.*UTF-8"):
        Env.load(file)


# --- The file's lines -----------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("A = spaced  ", "spaced"),
        ("  export A=exported", "exported"),
        ("A=", ""),
        ("A=x # a comment", "x"),
        ("A=# only a comment", ""),
        ("A=a#b", "a#b"),
        ("A=a=b", "a=b"),
        ('A="quoted # kept"  # a comment', "quoted # kept"),
        ("A='single # kept' # a comment", "single # kept"),
        ('A="  ends kept  "', "  ends kept  "),
        (r'A="two\nlines\tand \"quotes\" and \\"', 'two\nlines\tand "quotes" and \\'),
        (r"A='no \n escapes'", r"no \n escapes"),
        ('A="', '"'),
        ("A=it's", "it's"),
    ],
)
def test_a_line_of_the_file_gives_its_value(line, value):
    assert parse_dotenv(line) == {"A": value}


@pytest.mark.parametrize("line", ["", "# A=1", "A", "1A=x", "A-B=x", "=x"])
def test_a_line_that_sets_nothing_is_passed_over(line):
    assert parse_dotenv(line) == {}


def test_a_later_line_wins():
    assert parse_dotenv("A=1\nA=2") == {"A": "2"}


@given(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])))
def test_any_quoted_value_survives(value):
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_dotenv(f'BEFORE=1\nA="{escaped}"\nAFTER=1') == {
        "BEFORE": "1",
        "A": value,
        "AFTER": "1",
    }


@given(st.text())
def test_no_file_content_raises(content):
    parse_dotenv(content)


# --- Readers --------------------------------------------------------------------


def test_text_is_trimmed_and_blank_means_the_default():
    assert env("  x ").text("NAME", "d") == "x"
    assert env("   ").text("NAME", "d") == "d"
    assert env().text("NAME", "d") == "d"


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "TRUE", "On", " Yes "])
def test_a_flag_is_true(word):
    assert env(word).flag("NAME", default=False) is True


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "FALSE", "Off"])
def test_a_flag_is_false(word):
    assert env(word).flag("NAME", default=True) is False


@pytest.mark.parametrize("default", [True, False])
def test_a_flag_that_is_not_set_is_its_default(default):
    assert env(" ").flag("NAME", default=default) is default


@pytest.mark.parametrize(
    ("word", "number"), [("5", 5), ("+5", 5), ("1", 1), ("100", 100), (None, 7)]
)
def test_a_whole_number_is_read(word, number):
    assert env(word).integer("NAME", 7, low=1, high=100) == number


@pytest.mark.parametrize(("word", "number"), [("5", 5.0), ("0.5", 0.5), ("60.0", 60.0), (None, 7)])
def test_seconds_are_read(word, number):
    assert env(word).seconds("NAME", 7, low=0.1, high=60) == number


@pytest.mark.parametrize(
    ("word", "words"),
    [("a, b,,c ,", ["a", "b", "c"]), (",", []), (None, []), ("小霜,霜", ["小霜", "霜"])],
)
def test_a_comma_list_is_read(word, words):
    assert env(word).words("NAME") == words


def test_a_choice_is_read():
    assert env("b").choice("NAME", "a", ("a", "b")) == "b"
    assert env().choice("NAME", "a", ("a", "b")) == "a"


@pytest.mark.parametrize(
    "word",
    ["http://127.0.0.1:1/v1", "https://api.example.com/v1/chat/completions", "http://[::1]:8/", ""],
)
def test_a_web_address_is_kept_as_it_is(word):
    assert env(word).url("NAME", WEB) == word


def test_a_socket_address_needs_no_host():
    assert env("unix:///run/redis.sock").url("NAME", ("redis", "unix")) == "unix:///run/redis.sock"


@pytest.mark.parametrize(
    ("word", "address"),
    [
        (None, ("0.0.0.0", 1234)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        (":80", ("0.0.0.0", 80)),
        ("[::1]:65535", ("::1", 65535)),
        ("my-host.local:1", ("my-host.local", 1)),
    ],
)
def test_a_listening_address_is_read(word, address):
    assert env(word).address("NAME", "0.0.0.0:1234") == address


# --- Wrong values ---------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], str]] = [
    *(("flag", {"default": True}, word) for word in ("maybe", "2", "真", "truee")),
    *(
        ("integer", {"default": 5, "low": 1, "high": 10}, word)
        for word in ("lots", "1.0", "1e1", "0", "11", "-1", "9" * 30, "1 2")
    ),
    *(
        ("seconds", {"default": 5, "low": 1, "high": 10}, word)
        for word in ("soon", "nan", "inf", "1e1", "0.5", "11", "-1", "5s")
    ),
    *(("choice", {"default": "a", "allowed": ("a", "b")}, word) for word in ("c", "A")),
    *(
        ("url", {"schemes": WEB}, word)
        for word in ("host", "ftp://host", "http:host", "http://", "//host", "http://[::1")
    ),
    *(
        ("url", {"schemes": WEB}, word)
        for word in ("http://host:port", "http://host:99999", "http://:80")
    ),
    *(
        ("address", {"default": ":1"}, word)
        for word in ("80", "host", "host:", "host:0", "host:65536", "::1:80", "h h:80", "[::1]80")
    ),
]


@pytest.mark.parametrize(("reader", "options", "word"), WRONG)
def test_a_wrong_value_stops_the_start_with_the_variables_name(reader, options, word):
    with pytest.raises(InvalidSetting, match=r"^NAME: "):
        getattr(env(word), reader)("NAME", **options)


@pytest.mark.parametrize(
    "word",
    ["ftp://u:s3cret@host", "ftp://u:s3cr@et@host", "u:s3cret@host", "http://u:s3cret@[host"],
)
def test_a_wrong_address_is_shown_without_its_password(word):
    with pytest.raises(InvalidSetting) as caught:
        env(word).url("NAME", WEB)
    assert "s3cr" not in str(caught.value)
    assert "et@" not in str(caught.value)


# --- Database addresses ---------------------------------------------------------


def test_a_postgres_address_is_taken_apart():
    entry = parse_database_url(
        "NAME", "postgres://us%40er:p%2Fw@db.example:5433/frost?sslmode=require"
    )
    parts = {name: entry[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    assert parts == {
        "NAME": "frost",
        "USER": "us@er",
        "PASSWORD": "p/w",
        "HOST": "db.example",
        "PORT": "5433",
    }
    assert entry["ENGINE"] == "django.db.backends.postgresql"
    assert entry["OPTIONS"]["sslmode"] == "require"  # type: ignore[index]
    assert entry["OPTIONS"]["pool"]  # type: ignore[index]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_postgres_socket_folder_is_its_host(scheme):
    entry = parse_database_url("NAME", f"{scheme}://postgres@/frost?host=/tmp/a%20b")
    assert (entry["HOST"], entry["PORT"], entry["NAME"]) == ("/tmp/a b", "", "frost")
    assert "host" not in entry["OPTIONS"]  # type: ignore[operator]


def test_options_of_a_postgres_address_are_decoded():
    entry = parse_database_url("NAME", "postgres://h/db?sslrootcert=%2Fetc%2Fca.pem")
    assert entry["OPTIONS"]["sslrootcert"] == "/etc/ca.pem"  # type: ignore[index]


@pytest.mark.parametrize(
    ("url", "name"), [("sqlite:////var/a%20b.db", "/var/a b.db"), ("sqlite:///here.db", "here.db")]
)
def test_a_sqlite_address_is_a_path(url, name):
    entry = parse_database_url("NAME", url)
    assert (entry["ENGINE"], entry["NAME"]) == ("django.db.backends.sqlite3", name)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/db",
        "postgres://host",
        "postgres://host/",
        "sqlite://",
        "frost.db",
        "postgres://u:s3cret/x@host/db",
        "postgres://u:p@h:s3cret/db",
        "postgres://u:s3cret@[h/db",
        "postgres://h:99999/db",
    ],
)
def test_a_wrong_database_address_is_named_without_its_password(url):
    with pytest.raises(InvalidSetting, match=r"^NAME: ") as caught:
        parse_database_url("NAME", url)
    assert "s3cret" not in str(caught.value)
