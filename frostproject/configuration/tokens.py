"""The tokens that the program makes: one for OneBot clients, one for programs at ``/agent/query``.

Each is a file of the data folder, for its owner alone. The environment wins over it.
"""

import re
import secrets
from pathlib import Path

from frostproject.configuration.env import InvalidSetting
from frostproject.configuration.machine import write_secret_once

#: The file of each variable's token.
TOKEN_FILES = {"ONEBOT_ACCESS_TOKEN": "onebot_access_token", "HTTP_API_TOKEN": "http_api_token"}
#: The files that this process created; their content was not shown yet.
made_files: set[Path] = set()
#: The file of each variable whose token was taken from one.
token_sources: dict[str, Path] = {}


def load_or_make_token(folder: Path, name: str) -> str:
    """The token of the variable ``name`` that is kept in ``folder``, made if it is not there.

    Raises :class:`InvalidSetting`, without the token, where the file holds none or cannot be read.
    """
    path = folder / TOKEN_FILES[name]
    remedy = f"delete the file, and the next start makes another token; or set {name}"
    try:
        if write_secret_once(path, secrets.token_hex(16)):
            made_files.add(path)
        token = path.read_bytes().decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    except OSError as error:
        raise InvalidSetting(
            f"{name}: {path} cannot be made or read ({error.strerror}); {remedy}"
        ) from error
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidSetting(
            f"{name}: {path} holds no token (one line of letters, digits and signs); {remedy}"
        )
    token_sources[name] = path
    return token
