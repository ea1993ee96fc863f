"""Finding and installing the servers of others: pinned, from whatever registry the machine has,
or not at all."""

import json
import re

import pytest

from tests import peers
from tests.browser import test_axe
from tests.reference_servers import FOLDER, reference_servers


@pytest.mark.parametrize(
    "folder", [FOLDER, peers.FOLDER, test_axe.FOLDER], ids=lambda folder: folder.name
)
def test_the_servers_are_pinned_and_the_lock_names_no_registry(folder):
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {name: lock[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert not [name for name, package in lock.items() if "resolved" in package]
    assert all(package.get("integrity") for name, package in lock.items() if name)


def test_without_node_tests_are_skipped_unless_they_have_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.delenv("FROST_TEST_NODE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Node"):
        reference_servers()
    monkeypatch.setenv("FROST_TEST_NODE", "required")
    with pytest.raises(pytest.fail.Exception, match="Node"):
        reference_servers()
