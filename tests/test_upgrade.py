"""``make upgrade``, in a clone that is one commit behind."""

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
MAKEFILE = "install:\n\t@true\n"  # the packages here are those of the tests


def sh(folder: Path, *command: str) -> str:
    env = clean_environment() | {"FROST_DATA_DIR": str(folder.parent / "data")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "MODEL_NAME": ""}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}\nstatus {done.returncode}"


def commit(folder: Path, words: str) -> str:
    sh(folder, "git", "add", "--all")
    sh(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", words)
    return sh(folder, "git", "rev-parse", "HEAD").split()[0]


class Clone:
    """An installation, and the repository that it came from."""

    def __init__(self, folder: Path) -> None:
        self.origin, self.here = folder / "origin", folder / "here"
        self.database = folder / "data" / "frostagent.sqlite3"
        kept = ("manage.py", "deploy", "agent", "onebot", "tools", "frostproject", "templates")
        for name in (*kept, "locale", "plugins", "constraints.txt"):
            copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
            self.origin.mkdir(exist_ok=True)
            copy(PROJECT / name, self.origin / name)
        (self.origin / "Makefile").write_text(MAKEFILE)
        (self.origin / ".gitignore").write_text("__pycache__/\n.venv\ndata/\n")
        sh(self.origin, "git", "init", "--quiet", "-b", "main")
        self.first = commit(self.origin, "first")
        sh(folder, "git", "clone", "--quiet", str(self.origin), "here")
        (self.here / ".venv").symlink_to(Path(sys.prefix))
        sh(self.here, sys.executable, "manage.py", "migrate", "--noinput")
        with sqlite3.connect(self.database) as rows:
            rows.execute("INSERT INTO auth_group (name) VALUES ('kept')")
        rows.close()

    def migrate_to(self, last: str) -> str:
        file = self.origin / "frostproject" / "migrations" / "0099_later.py"
        file.write_text(MIGRATION.format(last=last))
        return commit(self.origin, "later")

    def upgrade(self) -> str:
        return sh(self.here, sys.executable, "deploy/upgrade.py")

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
    newest = clone.migrate_to('migrations.RunSQL("SELECT 1")')
    said = clone.upgrade()
    assert "Going back first" in said, said
    assert "Done" in said
    assert "status 0" in said
    assert clone.head == newest
    assert "brought_along" in clone.tables()
    assert "half_done" not in clone.tables()
    assert "newest version already" in clone.upgrade()
