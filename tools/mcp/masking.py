"""Servers shown and handed on without the keys that tend to stand in their addresses and arguments. Pure.

Values of headers and variables are sealed and are never shown at all. Addresses and
arguments are not: whoever sets a server up has to see them. Others, and files that are
passed around, get them with a mask where a key is likely.
"""

import re
from collections.abc import Callable, Sequence

MASK = "••••"
"""What stands for a value that is stored and not shown."""
Mask = Callable[[str], str]
"""What to write in place of the value of that name."""
PLACEHOLDER = re.compile(r"\$\{[^{}]*\}")

_SECRET_NAME = re.compile(r"(key|token|secret|pass|pwd|auth|credential|signature|bearer|cookie|session)", re.IGNORECASE)
_PAIR = re.compile(r"([?&;])([^=&;#]+)=([^&;#]+)")
_SEGMENT = re.compile(r"(?<=/)[A-Za-z0-9_-]{14,}(?=[/?#]|$)")
_RANDOM = re.compile(r"(?=(?:[^0-9]*[0-9]){3})(?=.*[A-Za-z])[A-Za-z0-9_+=-]{14,}")
_OPTION = re.compile(r"(--?[A-Za-z0-9][\w.-]*|[A-Za-z_]\w*)=(.+)", re.DOTALL)


def dots(name: str) -> str:
    """The mask of pages: the same for every value."""
    return MASK


def placeholder(name: str) -> str:
    """The mask of files: ``${NAME}``, which says what belongs there."""
    return f"${{{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_').upper() or 'SECRET'}}}"


def masked_url(url: str, mask: Mask) -> str:
    """``url`` with a mask for parameters and parts of the path that are likely to be keys."""
    head, question, query = url.partition("?")
    scheme, slashes, rest = head.partition("://")
    path = _SEGMENT.sub(lambda found: mask("secret") if _RANDOM.fullmatch(found[0]) else found[0], rest)
    return f"{scheme}{slashes}{path}" + _PAIR.sub(lambda pair: _masked_pair(pair, mask), question + query)


def masked_arguments(arguments: Sequence[str], mask: Mask) -> list[str]:
    """``arguments`` with a mask for the values of options that sound secret, and for what looks like a key."""
    shown, option = [], ""
    for argument in arguments:
        shown.append(_masked_argument(argument, option, mask))
        is_secret_option = argument.startswith("-") and "=" not in argument and _SECRET_NAME.search(argument)
        option = argument if is_secret_option else ""
    return shown


def _masked_argument(argument: str, option: str, mask: Mask) -> str:
    if option and not argument.startswith("-"):
        return mask(option)
    if assigned := _OPTION.fullmatch(argument):
        name, value = assigned.groups()
        return f"{name}={mask(name)}" if _is_secret(name, value) else argument
    if "://" in argument:
        return masked_url(argument, mask)
    return mask("secret") if _RANDOM.fullmatch(argument) else argument


def _masked_pair(pair: "re.Match[str]", mask: Mask) -> str:
    sign, name, value = pair.groups()
    return f"{sign}{name}={mask(name)}" if _is_secret(name, value) else pair[0]


def _is_secret(name: str, value: str) -> bool:
    return bool(_SECRET_NAME.search(name) or _RANDOM.fullmatch(value))
