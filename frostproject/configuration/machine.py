"""What the program finds out about the machine it starts on.

The tokens that the program makes: one for OneBot clients, one for programs at ``/agent/query``.

Each is a file of the data folder, for its owner alone. The environment wins over it.
"""

import os
import re
import secrets
import socket
import zoneinfo
from pathlib import Path

from frostproject.configuration.env import InvalidSetting

#: Signs of a secret key. Ours have 67; who made one himself has at least these.
SHORTEST_KEY = 32
LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]


def own_hosts() -> list[str]:
    """Loopback plus the names and addresses under which this machine can be reached.

    No name is resolved: a resolver that does not answer must not delay the start.
    """
    name = socket.gethostname()
    names = {name, f"{name.split('.')[0]}.local", *_local_ipv4(), _outward_ipv4()}
    return LOOPBACK_HOSTS + sorted(n for n in names if n and n not in LOOPBACK_HOSTS)


def _local_ipv4() -> set[str]:
    """Every IPv4 address of every interface, on Linux; elsewhere nothing."""
    table = Path("/proc/net/fib_trie")
    if not table.is_file():
        return set()
    return set(re.findall(r"-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL", table.read_text()))


def _outward_ipv4() -> str:
    """The address packets to the outside leave from; connecting a UDP socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def local_time_zone() -> str:
    """The machine's time zone as an IANA name, "UTC" when it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    linked = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2].removeprefix("posix/")
    # TZ may also be a path or a rule such as CST-8, which Django's settings do not take.
    return next((name for name in (named, linked) if name in zoneinfo.available_timezones()), "UTC")


def prepare_data_folder(path: Path) -> Path:
    """``path``, made if missing and readable by its owner alone."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidSetting(f"FROST_DATA_DIR: {path} cannot be made: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise InvalidSetting(f"FROST_DATA_DIR: {path} is not writable")
    return path


def load_or_make_secret_key(folder: Path) -> str:
    """The installation's secret key, made on the first start and kept in ``folder``.

    Raises :class:`InvalidSetting`, without the key, where the file holds none or cannot be read.
    """
    path = folder / "secret_key"
    try:
        write_secret_once(path, secrets.token_urlsafe(50))
        key = path.read_bytes().decode("ascii", "replace").strip()
    except OSError as error:
        raise InvalidSetting(
            f"FROST_DATA_DIR: {path} cannot be made or read: {error.strerror}"
        ) from error
    if not re.fullmatch(rf"[!-~]{{{SHORTEST_KEY},}}", key):
        remedy = (
            "restore the file from a backup; without it stored secrets cannot be read and have to "
            "be entered again"
        )
        raise InvalidSetting(
            f"FROST_DATA_DIR: {path} holds no secret key "
            f"(one line of {SHORTEST_KEY} signs or more); {remedy}"
        )
    return key


def write_secret_once(path: Path, secret: str) -> bool:
    """Have ``path`` hold ``secret`` unless it is there already; whether this call made it. Raises
    OSError.

    Written aside and linked into place, so that two processes that start together
    agree on one secret and neither reads half of it.
    """
    if path.exists():
        return False
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii"
        ) as file:
            file.write(secret)
            file.flush()
            os.fsync(
                file.fileno()
            )  # a file that a power cut leaves empty would stop every later start
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


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
