"""Time limits come from one place, and a setting changes those that it names."""

import pytest

from tests.conftest import scripted_env
from tests.live_server import LiveServer
from tools.time_limits import TIME_LIMITS, TimeLimits


def test_without_the_setting_they_are_the_usual_ones():
    assert TimeLimits() == TIME_LIMITS


def test_a_limit_that_is_none_stops_the_start_with_its_name(model_server):
    with (
        pytest.raises(AssertionError, match="no_such_limit"),
        LiveServer(scripted_env(model_server), limits={"no_such_limit": 1}, fresh=True),
    ):
        pass
