"""What a client's answer is found by."""

import uuid
from collections.abc import Callable
from itertools import count


def echo_source() -> Callable[[], str]:
    """Echoes that no other process has used or will use: clients answer old calls on new
    sockets."""
    prefix, numbers = uuid.uuid4().hex[:12], count(1)
    return lambda: f"{prefix}-{next(numbers)}"


new_echo = echo_source()
