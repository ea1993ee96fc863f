"""The figures of ``make shape``, over a tree small enough to count by hand."""

import json
import runpy
import subprocess
import sys
import tomllib

import pytest

from tests.environment import PROJECT

SCRIPT = PROJECT / ".ci" / "shape.py"
SHAPE = runpy.run_path(str(SCRIPT))
measure, measure_rooms = SHAPE["measure"], SHAPE["measure_rooms"]
TREE = {
    "agent/__init__.py": "from agent import engine\n",
    "agent/engine.py": '"""Doc."""\nfrom . import state\nfrom agent.store.rows import Row\n',
    "agent/state.py": "from agent.store import rows\nimport tools.registry\n",
    "agent/store/__init__.py": "from . import rows\n",
    "agent/store/rows.py": "from .deep.low import Any\nclass Row: ...\n",
    "agent/store/deep/low.py": "import typing\nif typing.TYPE_CHECKING:\n    import agent.state\n",
    "agent/migrations/0001.py": "x = 1\n",
    "tools/registry.py": "def _once(a: Any): ...\ndef _often(): ...\n"
    "def find_all():\n    _once(cast(int, 1)); _often(); _often(); _often()\n"
    f"\n# {'wide' * 30}\nclass Row:\n    class Meta: ...\n    def __init__(self, context):\n"
    "        context.metadata['flow'] = context.metadata.get('flow') or context.metadata[NAME]\n",
    "manage.py": "x = 1\n",
}


@pytest.fixture
def tree(tmp_path):
    for path, text in TREE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("label", "figure"),
    [
        ("agent: rooms", 3),
        ("agent: arrows", 4),  # engine to both others, state and store to each other
        ("agent: arrows back", 1),
        ("agent: rooms in circles", 2),
        ("agent: floors, circles as one room", 2),
        ("agent: floors without arrows back", 3),
        ("agent: imports inside a room, %", 33.3),
        ("circles of files", 1),
        ("files in circles", 3),
        ("files", 7),
        ("files under 40 lines, __init__.py apart", 5),
        ("code lines", 19),
        ("lines over 100 columns", 1),
        ("functions", 4),
        ("functions: most lines", 2),
        ("helpers with one caller", 1),
        ("helpers with one caller, % of functions", 25.0),
        ("one-word function names, %", 66.7),
        ("one-word class names, %", 100.0),
        ("class names defined more than once", 1),
        ("all: statements", 27),
        ("tools: statements, imports and docstrings apart", 14),
        ("Any per 1,000 code lines", 52.6),
        ("casts", 1),
        ("keys of metadata", 2),
        ("keys of metadata: places", 3),
    ],
)
def test_a_figure_is_what_counting_by_hand_gives(tree, label, figure):
    assert measure(tree)[label] == figure


def shape(*arguments):
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_two_trees_stand_beside_each_other_with_the_change(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "agent").mkdir()
    (other / "agent" / "engine.py").write_text("x = 1\n", encoding="utf-8")
    lines = [line.rsplit(maxsplit=3) for line in shape(tree, "--beside", other).stdout.splitlines()]
    assert ["agent: rooms", "1", "3", "+2"] in lines
    assert json.loads(shape(other, "--json").stdout)["here"]["agent: rooms"] == 1


def test_a_folder_without_the_packages_is_refused(tmp_path):
    refused = shape(tmp_path)
    assert refused.returncode == 1
    assert "name a checkout" in refused.stderr


def test_a_room_has_its_statements_arrows_and_helpers(tree):
    assert measure_rooms(tree) == {
        "agent": {"statements": 6, "arrows": 1, "helpers": 0},
        "agent/store": {"statements": 7, "arrows": 1, "helpers": 0},
        "tools": {"statements": 14, "arrows": 0, "helpers": 1},
    }


def test_no_room_grows_past_the_figures_that_are_written_of_it():
    written = tomllib.loads((PROJECT / ".ci" / "shape.toml").read_text(encoding="utf-8"))
    grown = {
        f"{room}: {name}": (written.get(room, {}).get(name, 0), count)
        for room, figures in measure_rooms(PROJECT).items()
        for name, count in figures.items()
        if count > written.get(room, {}).get(name, 0)
    }
    assert grown == {}, "make smaller what grew, or run: make shape ARGS=--write"
