"""What a newcomer meets first: the Makefile, the pinned packages, the example settings, the
documents."""

import importlib.metadata
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pi_heif
import pytest
from django.core.management import get_commands
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from frostproject.configuration.env import parse_dotenv
from tests.environment import PROJECT, SETTINGS, variables_of_settings
from tools.contract import ToolExecutionContext

#: Every document that is held to the truth, by its path from the project's folder.
GUIDES = tuple(
    str(file.relative_to(PROJECT))
    for pattern in ("*.md", "docs/**/*.md", "plugins/*.md", "benchmarks/*.md", "chaos/*.md")
    for file in sorted(PROJECT.glob(pattern))
)
LOCKS = ("requirements.lock", "requirements-drawing.lock", "requirements-dev.lock")
#: What is asked for, in the order of the locks; the tests need all of it.
ASKED = tuple(name.replace(".lock", ".txt") for name in LOCKS)
#: Names in capitals that documents mention and settings do not read.
FOREIGN = {
    "PIP_INDEX_URL",
    "ARGS",
    "PYTHON",
    "FROST_FAULT",
    "FROST_TEST_NODE",
    "FROST_TEST_BROWSER",
    "E_CAPABILITY_DENIED",
    "RLIMIT_FSIZE",
    "SAMPLE_TOOLS",
    "OLLAMA_CONTEXT_LENGTH",
    "COMPOSE_PROFILES",
}
#: Names in capitals that compose.yaml has, as variables or as arguments of the image.
COMPOSED = set(
    re.findall(r"[A-Z]+_[A-Z_]+", (PROJECT / "compose.yaml").read_text(encoding="utf-8"))
)


def translation(name: str) -> str:
    """Where the Chinese version of the English guide ``name`` would be."""
    return (
        name.replace("docs/", "docs/zh-CN/")
        if name.startswith("docs/")
        else name.replace(".md", ".zh-CN.md")
    )


def text(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


# --- The Makefile ---------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the project's outside in which everything was installed a moment ago."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    for name in ("Makefile", *LOCKS):
        shutil.copy(PROJECT / name, tmp_path)
        os.utime(tmp_path / name, (1, 1))
    for place, name in enumerate(("bin/python", ".installed", ".installed-dev")):
        file = tmp_path / ".venv" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (place + 2, place + 2))
    return tmp_path


def make(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    return subprocess.run(
        ["make", *words],
        cwd=folder,
        env=kept | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_second_run_starts_the_server_and_does_nothing_else(installed):
    assert make(installed, "-n", "run", "ARGS=127.0.0.1:1").stdout.splitlines() == [
        ".venv/bin/python manage.py runserver 127.0.0.1:1"
    ]


def test_changed_pins_are_installed_before_the_server_starts(installed):
    (installed / "requirements.lock").touch()
    said = make(installed, "-n", "run").stdout
    assert said.index("--require-hashes -r requirements.lock") < said.index("runserver")
    assert "requirements-dev" not in said


def test_what_draws_is_installed_by_its_own_command_and_then_kept_up_to_date(installed):
    drawing = "--require-hashes -r requirements-drawing.lock"
    assert drawing in make(installed, "-n", "drawing").stdout
    (installed / "requirements.lock").touch()
    assert LOCKS[1] not in make(installed, "-n", "install").stdout
    (installed / ".venv" / "lib" / "python3.11" / "site-packages" / "typst").mkdir(parents=True)
    assert LOCKS[1] in make(installed, "-n", "install").stdout


def test_tests_install_what_only_they_need(installed):
    (installed / "requirements-dev.lock").touch()
    said = make(installed, "-n", "test").stdout
    assert "pip install" in said
    assert "--require-hashes -r requirements-dev.lock" in said


def test_a_python_that_is_missing_or_too_old_is_named_and_nothing_is_left(installed):
    shutil.rmtree(installed / ".venv")
    old = installed / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    said = make(installed, "run", f"PYTHON={old}")
    assert said.returncode != 0
    assert "needs Python 3.11 or newer" in said.stderr
    assert not (installed / ".venv").exists()


def test_a_python_without_venv_is_told_which_package_is_missing(installed):
    shutil.rmtree(installed / ".venv")
    bare = installed / "python3.11"
    bare.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\nmkdir -p .venv/bin\nexit 1\n')
    bare.chmod(0o755)
    said = make(installed, "run", f"PYTHON={bare}")
    assert "apt install python3-venv" in said.stderr
    assert not (installed / ".venv").exists()


def test_the_gate_can_be_run_and_takes_no_input():
    gate = PROJECT / ".ci" / "run"
    assert os.access(gate, os.X_OK)
    assert "lint test </dev/null" in text(".ci/run")


def test_the_fast_part_of_the_suite_is_all_but_what_is_live_or_slow(installed):
    fast, whole = (make(installed, "-n", name).stdout.strip() for name in ("test-fast", "test"))
    assert fast == f'{whole} -m "not live and not slow"'


# --- Packages -------------------------------------------------------------------


def requirements(name: str) -> list[Requirement]:
    lines = (line.partition(" #")[0].strip(" \\") for line in text(name).splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def pins(name: str = "constraints.txt") -> dict[str, str]:
    return {
        canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in requirements(name)
    }


def needed_by(names: list[Requirement]) -> Iterator[str]:
    """Every installed package that ``names`` lead to on this machine."""
    waiting, seen = list(names), set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        yield key[0]
        for line in importlib.metadata.requires(requirement.name) or []:
            further = Requirement(line)
            extras = requirement.extras or {""}
            if further.marker is None or any(
                further.marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(further)


@pytest.mark.parametrize("name", [*ASKED, *LOCKS, "constraints.txt"])
def test_every_package_is_pinned_to_one_version(name):
    assert [
        str(r)
        for r in requirements(name)
        if not re.fullmatch(r"==[\w.]+", str(r.specifier)) or r.url
    ] == []


def test_every_package_that_is_pulled_in_is_pinned_at_the_version_that_is_tested():
    known, wanted = (
        pins(),
        set(needed_by([one for name in ASKED for one in requirements(name)])),
    )
    assert {name: importlib.metadata.version(name) for name in wanted} == {
        name: known.get(name) for name in wanted
    }


@pytest.mark.parametrize(("name", "lock"), [*zip(ASKED, LOCKS, strict=True)])
def test_what_is_asked_for_is_locked_at_the_same_version(name, lock):
    asked, locked = pins(name), pins(lock)
    assert {package: locked.get(package) for package in asked} == asked, "run: make lock"


def test_a_lock_holds_all_that_is_pulled_in_and_what_is_asked_for_no_more_is_gone():
    for name, files in zip(LOCKS, (ASKED[:1], ASKED[1:2], ASKED), strict=True):
        wanted = set(
            needed_by([requirement for file in files for requirement in requirements(file)])
        )
        elsewhere = {
            canonicalize_name(r.name)
            for r in requirements(name)
            if r.marker and not r.marker.evaluate()
        }
        assert set(pins(name)) - elsewhere == wanted, "run: make lock"


def test_the_locks_and_the_constraints_name_the_same_versions():
    *parts, everything = (dict.fromkeys(map(str, requirements(name))) for name in LOCKS)
    assert list(everything) == [str(requirement) for requirement in requirements("constraints.txt")]
    for name, part in zip(LOCKS, parts, strict=False):
        assert pins(name).items() <= pins("requirements-dev.lock").items()
        assert len(part) == len(pins(name))  # no package in two versions


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes_and_no_file_says_where_to_load_it_from(name):
    entries = re.split(r"\n(?=\S)", text(name).strip())
    packages = [entry for entry in entries if not entry.startswith("#")]
    assert [
        entry
        for entry in packages
        if not re.fullmatch(r"\S+==.*?(?: \\\n    --hash=sha256:[0-9a-f]{64})+", entry)
    ] == []
    assert "://" not in text(name)


def test_the_server_carries_no_package_under_the_gpl():
    wanted = sorted(set(needed_by(requirements(ASKED[0]) + requirements(ASKED[1]))))
    assert [name for name in wanted if is_gpl(importlib.metadata.metadata(name))] == []
    assert list(Path(pi_heif.__file__).parent.parent.glob("pi_heif.libs/*x265*")) == []


def is_gpl(metadata: importlib.metadata.PackageMetadata) -> bool:
    said = [
        *(metadata.get_all("License-Expression") or ()),
        *(metadata.get_all("Classifier") or ()),
    ]
    return any(
        re.search(r"(?<!Lesser )General Public License|(?<!L)\bA?GPL", line) for line in said
    )


# --- The example settings -------------------------------------------------------


def test_the_example_file_shows_the_defaults(monkeypatch, tmp_path):
    shown = parse_dotenv(re.sub(r"^#(?=[A-Z_]+=)", "", text(".env.example"), flags=re.MULTILINE))
    for name in shown:
        monkeypatch.setenv(name, "")  # the suite's own environment has other values
    monkeypatch.setenv("FROST_DATA_DIR", str(tmp_path))
    default = runpy.run_path(str(SETTINGS))
    for name in shown.keys() - {"FROST_DATA_DIR"}:
        monkeypatch.setenv(name, shown[name])
    example = runpy.run_path(str(SETTINGS))
    assert {name: example.get(name) for name in shown} == {
        name: default.get(name) for name in shown
    }


def example_numbers() -> dict[str, float]:
    """The defaults in the example file that are numbers, by name."""
    shown = parse_dotenv(re.sub(r"^#(?=[A-Z_]+=)", "", text(".env.example"), flags=re.MULTILINE))
    return {name: float(v) for name, v in shown.items() if re.fullmatch(r"[\d.]+", v)}


# --- The documents --------------------------------------------------------------


@pytest.mark.parametrize("name", GUIDES)
def test_links_lead_somewhere(name):
    targets = re.findall(r"\]\((?!http)([^)\s]+)\)", text(name))
    assert [target for target in targets if not leads_somewhere(name, target)] == []


def leads_somewhere(name: str, target: str) -> bool:
    """Whether a link in the guide ``name`` leads to a file, and to a heading of it where it names
    one."""
    path, _, anchor = target.partition("#")
    file = (PROJECT / name).parent / path if path else PROJECT / name
    return file.exists() and (not anchor or anchor in anchors(file.read_text(encoding="utf-8")))


def anchors(document: str) -> set[str]:
    """The anchors of ``document`` on GitHub: those of its headings, and those that it sets
    itself."""
    without_code = re.sub(r"^```.*?^```", "", document, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", without_code, flags=re.MULTILINE)
    own = set(re.findall(r'<a id="([\w-]+)">', document))
    return own | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("name", GUIDES)
def test_files_that_are_named_exist(name):
    folders = "agent|onebot|tools|frostproject|tests|benchmarks|chaos|docs"
    named = re.findall(rf"`((?:{folders})/[\w/-]*(?:\.py|\.md)?)`", text(name))
    assert [path for path in named if not (PROJECT / path).exists()] == []


@pytest.mark.parametrize("name", GUIDES)
def test_commands_that_are_named_exist(name):
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), flags=re.MULTILINE))
    assert set(re.findall(r"(?:^|`|\$ )make ([a-z]+)", text(name), flags=re.MULTILINE)) <= targets
    assert set(re.findall(r"manage\.py ([a-z_]+)", text(name))) <= set(get_commands())


@pytest.mark.parametrize("name", GUIDES)
def test_variables_that_are_named_are_read(name):
    known = FOREIGN | COMPOSED | set(variables_of_settings())
    assert variables_in(text(name)) - known == set()


def variables_in(document: str) -> set[str]:
    return set(re.findall(r"(?:^|`)([A-Z][A-Z]*_[A-Z_]+)(?:=|`)", document, flags=re.MULTILINE))


@pytest.mark.parametrize("name", GUIDES)
def test_defaults_in_tables_of_settings_are_those_of_the_example_file(name):
    rows = re.findall(
        r"^\| ((?:`[A-Z_]+`(?:, |、)?)+) \| (\d[^|]*) \|", text(name), flags=re.MULTILINE
    )
    told = [
        (variable, float(default))
        for names, values in rows
        for variable, default in zip(
            re.findall(r"\w+", names), re.findall(r"[\d.]+", values), strict=True
        )
    ]
    assert [
        (variable, default) for variable, default in told if example_numbers()[variable] != default
    ] == []


async def test_the_tool_in_the_guide_can_be_called():
    code, *_ = re.findall(r"```python\n(.*?)```", text("CONTRIBUTING.md"), flags=re.DOTALL)
    namespace: dict[str, object] = {"__name__": "dice"}
    exec(code, namespace)  # the guide's own example
    roll_dice = namespace["roll_dice"]
    result = await roll_dice({"sides": 2}, ToolExecutionContext())  # type: ignore[operator]
    assert result.get_history_content() in ("掷出了 1", "掷出了 2")
    assert not (await roll_dice({"sides": 1}, ToolExecutionContext())).success  # type: ignore[operator]


@pytest.mark.parametrize("english", [name for name in GUIDES if translation(name) in GUIDES])
def test_both_languages_tell_the_same(english):
    told, translated = text(english), text(translation(english))
    assert blocks(told) == blocks(translated)
    assert variables_in(told) == variables_in(translated)
    for mark in ("#", "| ", "* "):  # headings, rows of tables, lists
        lines = [
            sum(line.startswith(mark) for line in document.splitlines())
            for document in (told, translated)
        ]
        assert lines[0] == lines[1], mark


def blocks(document: str) -> list[str]:
    """The code of ``document`` without its comments, which are translated."""
    code = re.findall(
        r"^```(?:json|yaml|nginx|ini|sh|python)\n(.*?)```", document, flags=re.DOTALL | re.MULTILINE
    )
    return [re.sub(r"\s+# .*$", "", block, flags=re.MULTILINE) for block in code]


def test_every_page_of_the_documents_is_there_in_both_languages_and_the_readmes_lead_to_it():
    for folder, readme in (("docs", "README.md"), ("docs/zh-CN", "README.zh-CN.md")):
        pages = {f"{folder}/{file.name}" for file in (PROJECT / folder).glob("*.md")}
        assert {Path(page).name for page in pages} == {
            file.name for file in (PROJECT / "docs").glob("*.md")
        }
        assert pages - set(re.findall(r"\]\(([^)#]+)", text(readme))) == set()


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_pictures_of_the_readmes_are_there_and_small(name):
    shown = re.findall(r'(?:src|srcset)="(docs/pictures/[^"]+)"', text(name))
    assert len(shown) >= 6
    assert [one for one in shown if (PROJECT / one).stat().st_size > 150_000] == []
    assert text(name).count(" alt=") == text(name).count("<img")


def test_the_readmes_stay_short():
    assert len(text("README.md").split()) <= 1300
    assert len(re.findall(r"[\u4e00-\u9fff]|[\w./:-]+", text("README.zh-CN.md"))) <= 2600
