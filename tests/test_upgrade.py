"""``make upgrade``, in a clone that is one commit behind."""

import fcntl
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import PROJECT, clean_environment

pytestmark = [pytest.mark.live, pytest.mark.slow]
MIGRATION = """from django.db import migrations
class Migration(migrations.Migration):
    dependencies = [("frostproject", "0005_seen_alerts")]
    operations = [migrations.RunSQL("CREATE TABLE brought_along (word text)"), {last}]
"""
#: The end of a file that has the later version fail: one of its checks, and its start.
CHECK = """
if sys.argv[1:2] == ["check"]:
    sys.exit("a check of the later version")
main()
"""
MAKEFILE = "install:\n\t@true\n"  # the packages here are those of the tests


def sh(folder: Path, *command: str, url: str = "") -> str:
    env = clean_environment() | {"FROST_DATA_DIR": str(folder.parent / "data")}
    env |= {"DATABASE_URL": url} if url else {}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "MODEL_NAME": ""}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}\nstatus {done.returncode}"


def commit(folder: Path, words: str) -> str:
    sh(folder, "git", "add", "--all")
    sh(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", words)
    return sh(folder, "git", "rev-parse", "HEAD").split()[0]


class Clone:
    """An installation, and the repository that it came from."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.url = url
        self.origin, self.here = folder / "origin", folder / "here"
        self.database = folder / "data" / "frostagent.sqlite3"
        kept = ("manage.py", "deploy", "agent", "onebot", "tools", "frostproject", "templates")
        for name in (*kept, "locale", "plugins", "constraints.txt"):
            copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy2
            self.origin.mkdir(exist_ok=True)
            copy(PROJECT / name, self.origin / name)
        (self.origin / "Makefile").write_text(MAKEFILE)
        (self.origin / ".gitignore").write_text("__pycache__/\n.venv\ndata/\n")
        sh(self.origin, "git", "init", "--quiet", "-b", "main")
        self.first = commit(self.origin, "first")
        # A clone that has what Python compiled, of files as old as it.
        shutil.copytree(self.origin, self.here)
        sh(self.here, "git", "remote", "add", "origin", str(self.origin))
        sh(self.here, "git", "fetch", "--quiet", "origin")
        sh(self.here, "git", "branch", "--quiet", "--set-upstream-to", "origin/main")
        (self.here / ".venv").symlink_to(Path(sys.prefix))
        sh(self.here, sys.executable, "manage.py", "migrate", "--noinput", url=url)
        self.ask("Group.objects.create(name='kept')")

    def migrate_to(self, last: str) -> str:
        file = self.origin / "frostproject" / "migrations" / "0099_later.py"
        file.write_text(MIGRATION.format(last=last))
        return commit(self.origin, "later")

    def upgrade(self) -> str:
        return sh(self.here, sys.executable, "deploy/upgrade.py", url=self.url)

    def ask(self, expression: str) -> str:
        """What the installed program makes of it."""
        words = f"from django.contrib.auth.models import Group; print({expression})"
        said = sh(self.here, sys.executable, "manage.py", "shell", "-c", words, url=self.url)
        assert "status 0" in said, said
        return said

    @property
    def head(self) -> str:
        return sh(self.here, "git", "rev-parse", "HEAD").split()[0]

    def tables(self) -> set[str]:
        with sqlite3.connect(self.database) as rows:
            assert rows.execute("SELECT 1 FROM auth_group WHERE name = 'kept'").fetchall()
            found = {name for (name,) in rows.execute("SELECT name FROM sqlite_master")}
        rows.close()
        return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("upgrade"))


def test_where_a_migration_fails_code_and_rows_are_those_of_before(clone: Clone):
    clone.migrate_to('migrations.RunSQL("SELECT nothing FROM nowhere")')
    before, said = clone.tables(), clone.upgrade()
    assert "FAILED" in said, said
    assert "status 1" in said
    assert (clone.head, clone.tables()) == (clone.first, before)
    assert not (clone.database.parent / "upgrade").exists()


@pytest.mark.parametrize(
    ("file", "code", "words"),
    [
        ("manage.py", CHECK, "a check of the later version"),
        ("frostproject/asgi.py", "raise SystemExit(3)", "did not become ready"),
    ],
    ids=["check", "start"],
)
def test_where_a_check_or_the_start_fails_the_migrated_database_is_that_of_before(
    clone: Clone, file: str, code: str, words: str
):
    sh(clone.origin, "git", "reset", "--quiet", "--hard", clone.first)
    path = clone.origin / file
    path.write_text(path.read_text().replace('if __name__ == "__main__":\n    main()', "") + code)
    clone.migrate_to("migrations.RunSQL(\"DELETE FROM auth_group WHERE name = 'kept'\")")
    before, said = clone.tables(), clone.upgrade()
    assert "migrated: the database" in said, said
    assert words in said
    assert "status 1" in said
    assert (clone.head, clone.tables()) == (clone.first, before)
    assert not (clone.database.parent / "upgrade").exists()


def test_it_refuses_while_a_server_works_on_the_database(clone: Clone):
    with Path(f"{clone.database}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = clone.upgrade()
    assert "stop it first" in said, said
    assert "status 1" in said
    assert clone.head == clone.first


def test_on_postgresql_rows_that_an_applied_migration_changed_are_those_of_before(
    tmp_path: Path, postgres_url: str
):
    clone = Clone(tmp_path, postgres_url)
    clone.migrate_to("migrations.RunSQL(\"DELETE FROM auth_group WHERE name = 'kept'\")")
    later = clone.origin / "frostproject" / "migrations" / "0100_last.py"
    broken = MIGRATION.replace("0005_seen_alerts", "0099_later")
    later.write_text(broken.format(last='migrations.RunSQL("SELECT nothing FROM nowhere")'))
    commit(clone.origin, "last")
    said = clone.upgrade()
    assert "back: the database is as it was" in said, said
    assert "status 1" in said
    assert "True" in clone.ask("Group.objects.filter(name='kept').exists()")
    assert "newer" not in sh(clone.here, sys.executable, "manage.py", "check", url=postgres_url)
    assert not (tmp_path / "data" / "upgrade").exists()


def test_edited_files_are_not_lost(clone: Clone):
    (clone.here / "manage.py").write_text("# mine\n" + (clone.here / "manage.py").read_text())
    said = clone.upgrade()
    assert "were edited" in said, said
    assert "status 1" in said
    assert clone.head == clone.first
    sh(clone.here, "git", "checkout", "manage.py")


def test_one_that_was_killed_goes_back_first_and_then_on(clone: Clone):
    folder = clone.database.parent / "upgrade"
    folder.mkdir()
    shutil.copy(clone.database, folder / "database.sqlite3")
    paths = {"copy": str(folder / "database.sqlite3"), "sqlite": str(clone.database)}
    (folder / "state.json").write_text(json.dumps({"commit": clone.first, "backup": ""} | paths))
    with sqlite3.connect(clone.database) as rows:
        rows.execute("CREATE TABLE half_done (word text)")
    rows.close()
    (clone.here / "manage.py").write_text("# half of a file")
    sh(clone.origin, "git", "reset", "--quiet", "--hard", clone.first)
    newest = clone.migrate_to('migrations.RunSQL("SELECT 1")')
    copy = (folder / "database.sqlite3").stat().st_ino
    said = clone.upgrade()
    assert "Going back first" in said, said
    assert clone.database.stat().st_ino == copy  # a full disk has no room for another
    assert "Done" in said
    assert "status 0" in said
    assert clone.head == newest
    assert "brought_along" in clone.tables()
    assert "half_done" not in clone.tables()
    assert "newest version already" in clone.upgrade()
