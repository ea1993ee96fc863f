"""The folder of plugins and their rows: what is found, and what stays whatever happens to the
files."""

import os

import pytest

from tests.tools.plugins.hosting import PLUGINS, plugin, rewrite
from tools.models import ConfigVersion
from tools.plugins.folder import PluginFileFilter, scan_folder, sync_plugin_rows
from tools.plugins.rows import encrypt_config, to_plugin_settings

SCHEMA = {
    "type": "object",
    "properties": {
        "key": {"type": "string", "writeOnly": True},
        "n": {"type": "integer", "default": 3},
    },
}


def test_only_folders_with_a_manifest_are_plugins(tmp_path):
    plugin(tmp_path, "a")
    plugin(tmp_path, ".hidden")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.py").touch()
    assert [found.folder for found in scan_folder(tmp_path)] == ["a"]
    assert scan_folder(tmp_path / "nowhere") == []


def test_a_stamp_changes_with_code_and_manifest_alone(tmp_path):
    folder = plugin(tmp_path, "a")
    stamps = [scan_folder(tmp_path)[0].stamp]
    (folder / "data.json").write_text("{}")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.py").touch()
    assert scan_folder(tmp_path)[0].stamp == stamps[0]
    for name in ("plugin.py", "more.py", "_manifest.json"):
        (folder / name).touch()
        os.utime(folder / name, ns=(len(stamps), len(stamps)))
        stamps.append(scan_folder(tmp_path)[0].stamp)
    assert len(set(stamps)) == 4


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("a/plugin.py", True),
        ("a/_manifest.json", True),
        ("a", True),
        ("a/data.json", False),
        ("a/__pycache__/x.py", False),
    ],
)
def test_only_changes_of_code_are_noticed(tmp_path, path, counts):
    assert PluginFileFilter(tmp_path)(1, str(tmp_path / path)) is counts  # type: ignore[arg-type]


def test_nothing_is_written_when_nothing_is_new(db, tmp_path):
    plugin(tmp_path, "a")
    sync_plugin_rows(scan_folder(tmp_path))
    number = ConfigVersion.current()
    sync_plugin_rows(scan_folder(tmp_path))
    assert ConfigVersion.current() == number


def test_what_the_operator_decided_outlives_a_broken_manifest_and_a_folder_that_is_gone(
    db, tmp_path
):
    folder = plugin(tmp_path, "a", capabilities=["storage"])
    sync_plugin_rows(scan_folder(tmp_path))
    PLUGINS.update(enabled=True, granted=["storage"])
    rewrite(folder / "_manifest.json", "nonsense")
    sync_plugin_rows(scan_folder(tmp_path))
    row = PLUGINS.get()
    assert (row.plugin_id, row.manifest["capabilities"], "JSON" in row.fault) == (
        "test.a",
        ["storage"],
        True,
    )
    sync_plugin_rows([])
    assert (PLUGINS.get().granted, PLUGINS.get().fault) == (["storage"], "Its folder is gone.")


def test_two_processes_that_find_a_plugin_at_once_make_one_row(db, tmp_path):
    plugin(tmp_path, "a")
    sync_plugin_rows(scan_folder(tmp_path))
    sync_plugin_rows(scan_folder(tmp_path))
    assert PLUGINS.count() == 1


def test_only_what_is_asked_for_and_granted_is_granted(db, tmp_path):
    plugin(tmp_path, "a", capabilities=["storage"])
    sync_plugin_rows(scan_folder(tmp_path))
    PLUGINS.update(granted=["storage", "send.text"])
    assert to_plugin_settings(PLUGINS.get()).granted == {"storage"}


def test_secrets_are_opened_for_the_plugin_and_a_lost_key_is_told(db, tmp_path, settings):
    plugin(tmp_path, "a", config_schema=SCHEMA)
    sync_plugin_rows(scan_folder(tmp_path))
    PLUGINS.update(enabled=True, config=encrypt_config({"key": "s3cret"}, SCHEMA))
    assert to_plugin_settings(PLUGINS.get()).config == {"key": "s3cret", "n": 3}
    settings.SECRET_KEY = "another"
    found = to_plugin_settings(PLUGINS.get())
    assert ("anew" in found.fault, found.is_wanted) == (True, False)
