"""What a plain message may take, counted without a clock. Whoever must raise a figure of
``.ci/weight.toml`` does it in the commit that makes a message dearer, with the reason."""

import tomllib

import pytest

from benchmarks import walk
from benchmarks.process import ROOT
from tests.environment import PROJECT


@pytest.mark.slow
def test_a_plain_message_takes_no_more_than_is_written_down():
    most = tomllib.loads((PROJECT / ".ci" / "weight.toml").read_text(encoding="utf-8"))["message"]
    count = walk.measure(ROOT)
    took = {name: len(count[name]) if name == "files" else count[name] for name in most}
    over = {name: f"{took[name]} > {most[name]}" for name in most if took[name] > most[name]}
    assert not over, f"{over}; python -m benchmarks.walk --list says which they are"
