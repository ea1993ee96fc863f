"""What an installation has besides its database: folders of files, keys, and its environment."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

from frostproject.backup.archive import FOLDERS, Archive
from frostproject.configuration.env import SECRETS
from frostproject.configuration.machine import TOKEN_FILES
from frostproject.settings import env

KEY_FILES = ("secret_key", *TOKEN_FILES.values())
#: What belongs to one machine, or to a first start, and goes nowhere else.
OF_THE_MACHINE = frozenset(
    {
        *("FROST_DATA_DIR", "DATABASE_URL", "REDIS_URL", "PLUGINS_DIR", "WS_LISTEN_ADDR"),
        *("DJANGO_SUPERUSER_USERNAME", "DJANGO_SUPERUSER_PASSWORD", "DJANGO_SUPERUSER_EMAIL"),
        "FROST_FAULT",
    }
)
#: What a plugin's folder has that is made again.
_MADE = frozenset({"__pycache__", ".git", ".venv", "node_modules"})
RESTORED_ENV = "restored.env"
_NAME = re.compile("[A-Z][A-Z0-9_]*")
_SIGNED_IN = re.compile(r"://[^/?#\s]*@")


def folder_of(name: str) -> Path:
    """Where the files of one of :data:`FOLDERS` are."""
    places = settings.MEDIA_DIR, settings.RECEIVED_DIR, settings.PLUGINS_DIR
    return Path(dict(zip(FOLDERS, places, strict=True))[name])


def list_files() -> Iterator[tuple[str, Path]]:
    """Every file, with the name of its part; links are left out."""
    for name in FOLDERS:
        root = folder_of(name)
        for folder, below, files in os.walk(root):
            below[:] = sorted(set(below) - (_MADE if name == "plugins" else set()))
            for path in (Path(folder, file) for file in sorted(files)):
                if path.is_file() and not path.is_symlink():
                    yield f"{name}/{path.relative_to(root).as_posix()}", path


def read_settings(*, with_keys: bool) -> tuple[dict[str, Any], list[str]]:
    """What the environment says and the key files hold; and the names of what was left out of it
    because it is secret."""
    said = {name: env.text(name) for name in sorted(env.sources.keys() - OF_THE_MACHINE)}
    named = {name: settings.DATA_DIR / name for name in KEY_FILES}
    files = {name: path.read_text("ascii") for name, path in named.items() if path.is_file()}
    if with_keys:
        return {"environment": said, "files": files}, []
    hidden = [name for name, text in said.items() if name in SECRETS or _SIGNED_IN.search(text)]
    shown = {name: text for name, text in said.items() if name not in hidden}
    return {"environment": shown, "files": {}}, [*hidden, *files]


class Placed:
    """What a restore has written beside the database, and can take back. With ``replaces`` it is
    in place of all files that were here, but for plugins that it does not bring."""

    def __init__(self, *, replaces: bool) -> None:
        self._undo: dict[Path, Callable[[], object]] = {}
        self._aside: dict[Path, Path] = {}
        self._replaces = replaces

    def take_back(self) -> None:
        for undo in self._undo.values():
            undo()
        for entry, kept in self._aside.items():
            os.replace(kept, entry)

    def leave(self) -> None:
        """What was written stays; what it replaced goes."""
        for kept in self._aside.values():
            _remove(kept)

    def set_aside_all(self) -> None:
        """Begin with folders as of a new installation, where it replaces one."""
        for name in FOLDERS[:2] if self._replaces else ():
            for entry in sorted(folder_of(name).glob("*")):
                self._set_aside(entry)

    def _set_aside(self, entry: Path) -> None:
        self._aside[entry] = entry.with_name(f".replaced-{entry.name}")
        _remove(self._aside[entry])  # of one that was killed
        os.replace(entry, self._aside[entry])

    def place_file(self, archive: Archive, part: str) -> None:
        """Write the file of ``part``, closed to others. A plugin that is here already stays as it
        is, unless it replaces."""
        folder, top, *_below = PurePosixPath(part).parts
        path, entry = folder_of(folder) / part.removeprefix(f"{folder}/"), folder_of(folder) / top
        if entry not in self._undo:
            if entry.exists():
                if folder == "plugins" and not self._replaces:
                    return
                self._set_aside(entry)
            self._undo[entry] = partial(_remove, entry)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(new, "wb") as file, archive.part(part) as stream:
            shutil.copyfileobj(stream, file, 2**18)
        changed_at = archive.parts[part][2]
        os.utime(path, (changed_at, changed_at))

    def place_text(self, name: str, text: str) -> None:
        """Put a file of the data folder into the place of the one that this installation has."""
        path = settings.DATA_DIR / name
        before = path.read_bytes() if path.exists() else b""
        self._undo[path] = partial(_replace, path, before) if before else partial(_remove, path)
        _replace(path, text.encode())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())
    os.replace(draft, path)


def differing_settings(said: dict[str, str]) -> str:
    """What of ``said`` the environment does not say here, as lines of a ``.env`` file."""
    lines = []
    for name, text in said.items():
        if text != env.text(name) and name not in OF_THE_MACHINE and _NAME.fullmatch(name):
            quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'{name}="{quoted}"\n')
    return "".join(lines)
