"""Manifests are read strictly, and everything that is wrong is said at once."""

import json
from pathlib import Path

import pytest
from django.conf import settings

from tools.plugins.manifest import MANIFEST, MOST_BYTES, ManifestError, read_manifest

SOUND = {
    "manifest_version": 2,
    "id": "com.example.weather-news",
    "version": "1.20.3",
    "name": "Weather",
    "description": "Tells the weather.",
    "author": {"name": "A", "url": "https://example.com/"},
    "license": "MIT",
    "urls": {"repository": "https://example.com/"},
    "host_application": {"min_version": "1.0.0", "max_version": "1.99.99"},
    "sdk": {"min": "1.0.0", "max": "2.99.99"},
    "capabilities": ["storage"],
    "i18n": {"default_locale": "zh-CN"},
    "dependencies": [
        "msgpack>=1",
        {"type": "python_package", "name": "django", "version_spec": ">=5"},
    ],
    "tools": [{"name": "get_weather", "description": "天气"}],
    "config_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "default": "巴黎"}},
    },
}


def written(folder: Path, text: str | bytes) -> Path:
    (folder / MANIFEST).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def problems(folder: Path, **changes: object) -> list[str]:
    given = {name: value for name, value in {**SOUND, **changes}.items() if value is not ...}
    with pytest.raises(ManifestError) as caught:
        read_manifest(written(folder, json.dumps(given)))
    return caught.value.lines


def test_a_sound_manifest_is_read_whole(tmp_path):
    manifest = read_manifest(written(tmp_path, json.dumps(SOUND)))
    assert (manifest.id, manifest.version, manifest.author.name) == (
        "com.example.weather-news",
        "1.20.3",
        "A",
    )
    assert manifest.capabilities == ["storage"]
    assert [tool.name for tool in manifest.tools] == ["get_weather"]
    assert manifest.as_json() == SOUND


def test_little_is_required(tmp_path):
    few = {
        name: SOUND[name] for name in ("manifest_version", "id", "version", "name", "description")
    } | {"author": "me"}
    manifest = read_manifest(written(tmp_path, b"\xef\xbb\xbf" + json.dumps(few).encode()))
    assert (manifest.author.name, manifest.capabilities, manifest.config_schema) == ("me", [], {})


def test_the_plugin_that_ships_has_a_sound_manifest():
    assert read_manifest(Path(settings.BASE_DIR) / "plugins" / "hello").id == "frost.hello"


def test_every_problem_is_named_with_its_field(tmp_path):
    lines = problems(
        tmp_path,
        id="Weather",
        version="1.0",
        name=7,
        colour="red",
        author={"nam": "A"},
        license=...,
    )
    assert [line.partition(":")[0] for line in lines] == [
        "id",
        "version",
        "name",
        "author.name",
        "author.nam",
        "colour",
    ]
    assert "three numbers" in lines[1]
    assert "should be a text" in lines[2]
    assert lines[3] == "author.name: is missing"
    assert "capabilities, tools, config_schema" in lines[5]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"manifest_version": 1}, "manifest_version: should be the number 2"),
        ({"id": "weather"}, "id: should be lower-case"),
        ({"id": "a.b\n"}, "id: should be lower-case"),
        ({"id": "a..b"}, "id: should be lower-case"),
        ({"version": "1.0.0-beta"}, "version: should be three numbers"),
        ({"version": "01.0.0"}, "version: should be three numbers"),
        ({"name": " "}, "name: should be a name"),
        ({"description": "a\x1b[2Jb"}, "description: there are control characters in it"),
        ({"description": "a\u202eb"}, "description: there are control characters in it"),
        (
            {"capabilities": ["send.image"]},
            "capabilities[0]: there is no capability 'send.image'; there are: send.text",
        ),
        ({"capabilities": "storage"}, "capabilities: should be a list"),
        (
            {"tools": [{"name": "get weather"}]},
            "tools[0].name: should be a name; that of a tool has 1 to 64",
        ),
        ({"tools": [{"name": "a"}, {"name": "a"}]}, "tools: there twice: a"),
        (
            {"tools": [{"name": "a", "code": "x"}]},
            "tools[0].code: is not known here; the fields are: name, description",
        ),
        (
            {"config_schema": {"type": "string"}},
            "config_schema: should be the JSON schema of an object",
        ),
        (
            {"config_schema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
            "config_schema: is no valid JSON",
        ),
        (
            {
                "config_schema": {
                    "type": "object",
                    "properties": {"a": {"type": "integer", "default": "x"}},
                }
            },
            "config_schema: the default of a is not",
        ),
        (
            {"dependencies": ["not-there-at-all>=1"]},
            "dependencies: the Python package not-there-at-all>=1 is not installed",
        ),
        ({"dependencies": ["django<2"]}, "dependencies: django<2 is needed, and"),
        ({"dependencies": ["???"]}, "dependencies[0]: should be a Python package"),
        (
            {"dependencies": [{"type": "plugin", "id": "a.b"}]},
            "dependencies[0]: other plugins cannot be needed here",
        ),
        ({"python": ">=4"}, "python: >=4 is needed"),
        ({"python": "four"}, "python: should be like"),
        ({"host_application": {"min_version": "9.0.0"}}, "host_application: 9.0.0 - … is needed"),
        ({"sdk": {"max_version": "1.0.0"}}, "sdk: … - 1.0.0 is needed"),
        ({"sdk": {"max_version": "newest"}}, "sdk: should be versions"),
        ({"llm_providers": [{}]}, "llm_providers: is too long; 0 is the most"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_in_words(tmp_path, changes, line):
    lines = problems(tmp_path, **changes)
    assert len(lines) == 1
    assert lines[0].startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "The manifest is no JSON: Expecting"),
        ("[]", "The manifest is no JSON object."),
        (b"\xff\xfe", "The manifest is no JSON: 'utf-8' codec"),
        ('{"id": "a.b", "id": "c.d"}', "The manifest is no JSON: id is there twice"),
        ("[" * 100_000, "The manifest is no JSON: "),
        (b" " * (MOST_BYTES + 1), "The manifest has more than"),
    ],
    ids=["broken", "list", "encoding", "twice", "deep", "large"],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path, text, line):
    with pytest.raises(ManifestError) as caught:
        read_manifest(written(tmp_path, text))
    assert caught.value.lines[0].startswith(line)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(ManifestError, match="cannot be read"):
        read_manifest(tmp_path)


def test_no_more_problems_are_listed_than_somebody_reads(tmp_path):
    lines = problems(tmp_path, **{f"field{number}\n": 1 for number in range(100)})
    assert len(lines) == 31
    assert lines[-1] == "… and 70 more"
    assert all(line.isprintable() for line in lines)
