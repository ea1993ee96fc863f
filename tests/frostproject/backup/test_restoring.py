"""What was backed up is all there again, on either database."""

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings
from django.utils import timezone, translation

from agent.models import (
    AlertRoute,
    ChatSession,
    Installation,
    Message,
    ModelEndpoint,
    Note,
    Reminder,
)
from frostproject.backup import belongings, daily, saving
from frostproject.backup.saving import save
from frostproject.configuration.env import parse_dotenv
from frostproject.models import AuthenticatorApp
from frostproject.settings import env
from tests.databases import story
from tests.frostproject.backup.places import (
    PASSPHRASE,
    PICTURE,
    all_files,
    all_rows,
    at,
    change,
    live_there,
    made,
    put,
    quiet,
    read,
)
from tools.secrets.encryption import encrypt
from tools.secrets.models import Secret

KEY = "sk-very-secret-0815"


@pytest.fixture(autouse=True)
def _unblocked(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), translation.override("en"):
        yield


@pytest.fixture
def sealed_with(tmp_path: Path) -> str:
    path = tmp_path / "passphrase"
    path.write_text(f"{PASSPHRASE}\n")
    return f"--passphrase-file={path}"


def said_last(text: str, message_id: str) -> int:
    """The number of a new message."""
    chat = ChatSession.objects.latest("pk")
    return story.incoming(chat, text, Message.State.SILENT, message_id=message_id).pk


def remind_later() -> datetime:
    """When the chat is reminded next, of a rule."""
    due = timezone.now() + timedelta(days=1)
    rule = {"repeat": "FREQ=DAILY", "set_by": story.PERSON, "mention": story.PERSON}
    Reminder.objects.create(
        session=ChatSession.objects.latest("pk"), text="tea", due_at=due, **rule
    )
    return due


@pytest.mark.parametrize("way", ["sqlite-sqlite", "sqlite-postgresql", "postgresql-sqlite"])
def test_everything_is_there_again(way, tmp_path, sealed_with, request):
    source, target = (
        request.getfixturevalue("postgres_url") if name == "postgresql" else ""
        for name in way.split("-")
    )
    file, old, new = tmp_path / "a.zip", tmp_path / "old", tmp_path / "new"
    with at(old, source):
        live_there(old)
        Secret.objects.create(name="weather", sealed=encrypt(KEY))
        AlertRoute.objects.create(name="phone", sealed_address=encrypt(KEY))
        due = remind_later()
        gone = said_last("gone", "77")
        Message.objects.filter(pk=gone).delete()
        call_command("backup", str(file), sealed_with)
        before = all_rows()
    with at(new, target):
        call_command("restore", str(file), sealed_with)
        assert all_rows() == before
        assert all_files(new) == all_files(old)
        assert (new / "secret_key").read_text() == (old / "secret_key").read_text()
        assert (new / "http_api_token").read_text() == "token-of-old"
        assert oct((new / "secret_key").stat().st_mode)[-3:] == "600"
    with at(new, target):
        assert Secret.objects.get(name="weather").value == KEY
        assert AlertRoute.objects.get(name="phone").address == KEY
        assert [name for name, rows in before.items() if not rows] == []
        assert list(Reminder.objects.filter(next_at=due).values_list("text")) == [("tea",)]
        assert Note.objects.filter(text=story.NOTE).exists()
        assert said_last("new", "78") == gone + 1  # no number is given twice
    assert oct(file.stat().st_mode)[-3:] == "600"


def test_an_older_backup_is_brought_to_the_newest_tables(tmp_path, postgres_url):
    """On PostgreSQL, which changes no table while rows of it are still to be checked."""
    later = (
        *("agent.0021_daily_backup", "agent.0022_daily_acts", "agent.0023_spend_by_kind_and_day"),
        *("agent.0024_alert_routes", "agent.0025_reminders", "agent.0026_event_rules"),
        *("agent.0027_requests", "agent.0028_member_commands", "agent.0029_undo"),
        *(
            "agent.0030_chat_events",
            "agent.0031_event_rules_by_field",
            "agent.0032_persona_pictures",
        ),
        *("tools.0009_calls_per_day_chat", "onebot.0009_official_bots"),
        *("onebot.0010_events_of_accounts", "onebot.0011_cannot_speak"),
    )
    tables = (
        *("agent.alertroute", "agent.alertnotice", "agent.reminder", "agent.eventrule"),
        *("agent.joinrequest", "agent.requestrule", "agent.undostep", "agent.chatevent"),
        "agent.personapicture",
    )
    new = {
        "onebot.bot": ("all_for_me", "second_name", "silent_at", "cannot_speak_since"),
        "agent.installation": ("daily_backup", "backup_keep_gib"),
        "agent.manners": ("only_person", "only_until", "zone", "member_commands"),
        "tools.toolconfig": ("calls_per_day_chat",),
        "agent.toolcall": ("stopped_by", "state_change"),
    }

    def age(parts: dict[str, bytes], manifest: dict[str, Any]) -> None:
        for migration in later:
            manifest["migrations"].remove(migration)
        for label in tables:
            del manifest["tables"][label]
            for named in (manifest["parts"], parts):
                del named[f"rows/{label}.jsonl.gz"]
        for label, columns in new.items():
            table, name = manifest["tables"][label], f"rows/{label}.jsonl.gz"
            places = [at for at, one in enumerate(table["columns"]) if one not in columns]
            table["columns"] = [table["columns"][at] for at in places]
            rows = [json.loads(line) for line in whole[name].splitlines()]
            lines = [json.dumps([row[at] for at in places]) + "\n" for row in rows]
            put(parts, manifest, name, "".join(lines).encode())

    file = made(tmp_path / "old", tmp_path / "a.zip")
    whole = read(file)
    change(file, tmp_path / "older.zip", age)
    with at(tmp_path / "new", postgres_url):
        call_command("restore", str(tmp_path / "older.zip"))
        assert Installation.objects.get().daily_backup is None
        assert ("agent", "0021_daily_backup") in MigrationRecorder(connection).applied_migrations()
        assert Message.objects.filter(text="北京天气？").exists()


def test_signs_that_postgresql_does_not_take_are_replaced_and_counted(
    tmp_path, postgres_url, capsys
):
    with at(tmp_path / "old"):
        live_there(tmp_path / "old")
        Message.objects.filter(text="北京天气？").update(text="a\0b", raw={"c\0": ["\ud800", "🦊"]})
        save(tmp_path / "a.zip", "", quiet)
    with at(tmp_path / "new", postgres_url):
        call_command("restore", str(tmp_path / "a.zip"))
        assert Message.objects.get(text="a\ufffdb").raw == {"c\ufffd": ["\ufffd", "🦊"]}
    assert ": 1\n" in capsys.readouterr().out


def test_without_a_passphrase_no_key_is_in_the_file_and_what_is_missing_is_named(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(env._values, "UPSTREAM_API_KEY", KEY)
    monkeypatch.setitem(env._layers, "file", {"UPSTREAM_API_KEY": KEY})
    with at(tmp_path / "old"):
        live_there(tmp_path / "old")
        Secret.objects.create(name="weather", sealed=encrypt(KEY))
        address = f"https://bot:{KEY}@models.example.org/v1"
        ModelEndpoint.objects.create(name="own", base_url=address, model="m")
        AlertRoute.objects.create(name="phone", sealed_address=encrypt(KEY))
        call_command("backup", str(tmp_path / "a.zip"), "--without-keys")
        held = b"".join(read(tmp_path / "a.zip").values())
        secret = (tmp_path / "old" / "secret_key").read_bytes()
        token = (tmp_path / "old" / "http_api_token").read_bytes()
        assert not any(one in held for one in (KEY.encode(), secret, token))
    monkeypatch.undo()
    with at(tmp_path / "new"):
        call_command("restore", str(tmp_path / "a.zip"))
        assert ModelEndpoint.objects.get(name="own").base_url == "https://models.example.org/v1"
        assert (tmp_path / "new" / "http_api_token").read_text() == "token-of-new"
        assert AuthenticatorApp.objects.exists()
    said = capsys.readouterr().out
    assert all(one in said for one in ("UPSTREAM_API_KEY", "weather", "own", "phone", "(olga)"))


def test_what_a_running_server_was_answering_is_not_answered_a_second_time(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "is_running", lambda: True)
    made(tmp_path / "old", tmp_path / "a.zip")
    monkeypatch.undo()
    with at(tmp_path / "new"):
        call_command("restore", str(tmp_path / "a.zip"))
        left = Message.objects.filter(text__in=(story.IN_HAND, story.WAITING))
        assert {one.state for one in left} == {Message.State.EXPIRED}


def test_settings_of_the_old_machine_stand_in_a_file_and_count_nowhere(tmp_path, monkeypatch):
    prompt = 'say "hi" \\ twice\nand stop'
    said = {"SYSTEM_PROMPT": prompt, "DATABASE_URL": "postgres://u:p@h/d"}
    for name, text in said.items():
        monkeypatch.setitem(env._values, name, text)
    monkeypatch.setitem(env._layers, "file", said)
    made(tmp_path / "old", tmp_path / "a.zip")
    monkeypatch.undo()
    with at(tmp_path / "new"):
        call_command("restore", str(tmp_path / "a.zip"))
    text = (tmp_path / "new" / "restored.env").read_text()
    assert parse_dotenv(text) == {"SYSTEM_PROMPT": prompt}


def test_an_installation_that_is_not_empty_is_left_as_it_is(tmp_path):
    file = made(tmp_path / "old", tmp_path / "a.zip")
    with at(tmp_path / "new"):
        live_there(tmp_path / "new")
        before = all_rows()
        with pytest.raises(CommandError, match="is not empty"):
            call_command("restore", str(file))
        assert all_rows() == before


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_an_installation_that_is_not_empty_is_replaced_where_that_is_said(
    engine, tmp_path, request
):
    url = request.getfixturevalue("postgres_url") if engine == "postgresql" else ""
    file, new = made(tmp_path / "old", tmp_path / "a.zip"), tmp_path / "new"
    with at(tmp_path / "old"):
        before = all_rows()
    with at(new, url):
        live_there(new)
        said_last("of before", "77")
        (new / "media" / "own.png").write_bytes(PICTURE)
        (new / "plugins" / "dice" / "more.py").write_bytes(b"")
        with connection.cursor() as cursor:  # of a version that is newer than this one
            cursor.execute("CREATE TABLE agent_later (word text)")
            cursor.execute("CREATE TABLE of_others (word text)")
        call_command("restore", str(file), "--yes")
        assert all_rows() == before
        assert all_files(new) == all_files(tmp_path / "old")
        tables = connection.introspection.table_names()
        assert ("agent_later" in tables, "of_others" in tables) == (False, True)


def test_a_replacement_that_fails_leaves_everything_as_it_was(tmp_path, monkeypatch):
    file, new = made(tmp_path / "old", tmp_path / "a.zip"), tmp_path / "new"
    with at(new):
        live_there(new)
        (new / "media" / "own.png").write_bytes(PICTURE)
        rows, files = all_rows(), all_files(new)
        monkeypatch.setattr(belongings, "differing_settings", Mock(side_effect=OSError("full")))
        with pytest.raises(CommandError, match="Nothing was restored: full"):
            call_command("restore", str(file), "--yes")
        assert (all_rows(), all_files(new)) == (rows, files)


def test_without_a_passphrase_a_backup_has_to_be_asked_for_without_keys(tmp_path, capsys):
    with at(tmp_path / "old") as folder:
        live_there(folder)
        with pytest.raises(CommandError, match=r"FROST_BACKUP_PASSPHRASE .*--without-keys"):
            call_command("backup")
        assert not (folder / "daily").exists()
        call_command("backup", "--without-keys")
        file = Path(capsys.readouterr().out.splitlines()[-1])
        assert file.parent == folder / "daily"
        assert oct(file.stat().st_mode)[-3:] == "600"


def test_of_backups_by_hand_the_newest_are_kept_where_that_is_said(tmp_path):
    with at(tmp_path / "old") as folder:
        live_there(folder)
        (folder / "daily").mkdir()
        for day in (1, 2, 3):
            (folder / "daily" / f"frostagent-2025-01-0{day}-000000.zip").touch()
            (folder / "daily" / f"daily-2025-01-0{day}-000000.zip").touch()
        call_command("backup", str(tmp_path / "a.zip"), "--without-keys", "--keep=1")
        assert len(list((folder / "daily").iterdir())) == 6
        call_command("backup", "--without-keys", "--keep=2")
        kept = sorted(path.name for path in (folder / "daily").glob("frostagent-*"))
        assert len(kept) == 2
        assert kept[0] == "frostagent-2025-01-03-000000.zip"
        assert len(list((folder / "daily").glob("daily-*"))) == 3


def test_tables_and_people_without_messages_runs_and_bots_are_an_empty_installation(tmp_path):
    file = made(tmp_path / "old", tmp_path / "a.zip")
    with at(tmp_path / "old"):
        before = all_rows()
    with at(tmp_path / "new"):
        call_command("migrate", verbosity=0)
        User.objects.create_superuser("admin", password="of the first start")
        call_command("restore", str(file))
        assert all_rows() == before


def test_of_daily_backups_the_newest_seven_are_kept_within_their_size(tmp_path):
    with at(tmp_path / "old") as folder:
        live_there(folder)
        before = [folder / "daily" / f"daily-2025-01-0{day}-000000.zip" for day in range(1, 9)]
        (folder / "daily").mkdir()
        for file in before:
            file.write_bytes(bytes(1_000))
            os.utime(file, (1_700_000_000, 1_700_000_000))
        daily.save_daily("", quiet)
        (made,) = set(kept := sorted((folder / "daily").glob("*.zip"))) - set(before)
        assert kept == [*before[2:], made]
        daily.save_daily("", quiet)  # there is one of the day
        assert sorted((folder / "daily").glob("*.zip")) == kept
        os.utime(made, (1_700_000_000, 1_700_000_000))
        made = made.rename(made.with_name("daily-2025-02-01-000000.zip"))
        with override_settings(BACKUP_KEEP_BYTES=made.stat().st_size * 2 + 1_500):
            daily.save_daily("", quiet)
        kept = sorted((folder / "daily").glob("*.zip"))
        assert kept[:2] == [before[-1], made]
        assert len(kept) == 3
