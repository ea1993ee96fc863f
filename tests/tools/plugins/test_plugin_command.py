"""``manage.py plugin``: a new plugin works at once, and a broken one says why."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.tools.plugins.processes import write_plugin
from tools.management.commands.plugin import example_files
from tools.plugins.manifest import MANIFEST


@pytest.fixture
def plugins(tmp_path: Path, settings) -> Path:
    settings.PLUGINS_DIR = folder = tmp_path / "plugins"
    return folder


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("plugin", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("name", ["weather", "weather_news", "w-2-go"])
def test_a_new_plugin_is_sound(plugins, name):
    assert str(plugins / name) in run("new", name)
    assert f"local.{name.replace('_', '-')} 0.1.0 is sound" in run("check", name)


@pytest.mark.parametrize(
    "name", ["", "W", "weather news", "../weather", "a", "-a", "a__b", "a-", "天气", "x" * 41, "1a"]
)
def test_a_name_that_cannot_be_one_is_refused(plugins, name):
    with pytest.raises(CommandError, match="cannot be the name"):
        run("new", "--", name)
    assert not plugins.exists()


def test_a_folder_that_is_there_is_left_alone(plugins):
    run("new", "weather")
    (plugins / "weather" / "plugin.py").write_text("mine")
    with pytest.raises(CommandError, match="is there already"):
        run("new", "weather")
    assert (plugins / "weather" / "plugin.py").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_said(plugins):
    plugins.write_text("no folder")
    with pytest.raises(CommandError, match="cannot be written"):
        run("new", "weather")


def test_a_plugin_is_checked_wherever_it_is(plugins, tmp_path):
    folder = write_plugin(tmp_path / "elsewhere", example_files("weather")["plugin.py"])
    with pytest.raises(CommandError, match="There is no plugin"):
        run("check", str(folder))
    (folder / MANIFEST).write_text(example_files("weather")[MANIFEST])
    assert "weather_repeat: 把一段文字重复几遍" in run("check", str(folder))


def test_what_is_wrong_with_a_manifest_or_its_code_is_said(plugins):
    run("new", "weather")
    (plugins / "weather" / "plugin.py").write_text("print('printed')\nimport not_there_at_all")
    with pytest.raises(CommandError, match=r"plugin.py, line 2: ModuleNotFoundError"):
        run("check", "weather")
    (plugins / "weather" / MANIFEST).write_text("{}")
    with pytest.raises(CommandError, match="id: is missing"):
        run("check", "weather")


def test_tools_that_are_not_those_of_the_manifest_are_named(plugins):
    run("new", "weather")
    file = plugins / "weather" / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tools": [{"name": "other"}]}))
    with pytest.raises(CommandError) as caught:
        run("check", "weather")
    assert "names the tool other" in str(caught.value)
    assert "weather_repeat is not named" in str(caught.value)
