"""The packages that draw, which an installation may have or not."""

import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from agent.markdown import drawing_packages
from tests.environment import PROJECT, clean_environment


def test_what_is_installed_while_the_server_runs_is_found(monkeypatch, tmp_path):
    names = ("frost_draws", "frost_reads", "frost_fonts")
    monkeypatch.setattr(drawing_packages, "PACKAGES", names)
    monkeypatch.syspath_prepend(tmp_path)
    assert "make drawing" in drawing_packages.explain_missing()
    for name in names:
        assert not drawing_packages.are_installed()
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        os.utime(tmp_path, (1, names.index(name)))  # clocks of files may stand for milliseconds
    assert drawing_packages.explain_missing() == ""


def test_the_command_has_pip_install_what_is_locked(tmp_path):
    if not drawing_packages.are_installed():
        pytest.skip("a test installs nothing")
    done = subprocess.run(
        [sys.executable, "manage.py", "install_drawing"],
        cwd=PROJECT,
        env=clean_environment(FROST_DATA_DIR=str(tmp_path), LANGUAGE_CODE="en"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "already satisfied: typst==" in done.stdout
    assert "Answers are drawn" in done.stdout


def test_the_command_says_that_pip_failed(settings, tmp_path, capfd):
    settings.BASE_DIR = tmp_path
    with pytest.raises(CommandError):
        call_command("install_drawing")
    assert drawing_packages.LOCK in capfd.readouterr().err
