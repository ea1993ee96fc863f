"""The tokens that the program makes: one for OneBot clients, one for programs at ``/agent/query``.

Each is a file of the data folder, for its owner alone. The environment wins over it.
"""

import re
import secrets
from pathlib import Path

from frostproject.env import WrongSetting
from frostproject.machine import keep

#: The file of each variable's token.
FILES = {"ONEBOT_ACCESS_TOKEN": "onebot_access_token", "HTTP_API_TOKEN": "http_api_token"}
#: The files that this process made; what is in them nobody has seen yet.
made: set[Path] = set()
#: The file of each variable whose token was taken from one.
sources: dict[str, Path] = {}


def kept_token(folder: Path, name: str) -> str:
    """The token of the variable ``name`` that is kept in ``folder``, made if it is not there.

    Raises :class:`WrongSetting`, without the token, where the file holds none or cannot be read.
    """
    path = folder / FILES[name]
    remedy = f"delete the file, and the next start makes another token; or set {name}"
    try:
        if keep(path, secrets.token_hex(16)):
            made.add(path)
        token = path.read_bytes().decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    except OSError as error:
        raise WrongSetting(f"{name}: {path} cannot be made or read ({error.strerror}); {remedy}") from error
    if not re.fullmatch(r"[!-~]+", token):
        raise WrongSetting(f"{name}: {path} holds no token (one line of letters, digits and signs); {remedy}")
    sources[name] = path
    return token
