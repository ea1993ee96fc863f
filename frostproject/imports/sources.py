"""Files and folders on this machine, read within limits: what leads elsewhere or is no file is
refused."""

import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext as _

from frostproject.imports.databases import MAGIC, Tables, read_tables
from frostproject.imports.plan import ImportRefused

MOST_BYTES, MOST_IN_FOLDER, MOST_DATABASE = 16 << 20, 64 << 20, 1 << 30
MOST_ENTRIES = 10_000
#: The files of other programs that are read, and the folders in which they stand.
KNOWN = frozenset(
    {
        *("cmd_config.json", "mcp_server.json", "data_v4.db"),
        "langbot.db",
        *(".env", "brain.json", "group_summaries.json", "memory_catalog.json", "dialogue.yml"),
    }
)
PROFILE = "abconf_"
PLACES = ("", "data", "config", "data/config", "eval/dialogue")
#: What is read of a folder in which none of those stands.
PLAIN = (".json", ".png", ".yaml", ".yml")


@dataclass(slots=True)
class Source:
    """``files`` by name, without their folders; ``tables`` of the databases among them."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)
    is_folder: bool = False


def read_source(path: Path) -> Source:
    """Everything of ``path`` that may be of use. Raises :class:`ImportRefused`."""
    try:
        if path.is_dir():
            return _read_folder(path)
        head = _read_bytes(path, len(MAGIC), cut=True)
        if head.startswith(MAGIC):
            return Source(path.name, tables=_read_database(path))
        if head.startswith(b"PK\x03\x04"):
            return _read_zip(path)
        return Source(path.name, {path.name: _read_bytes(path)})
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, ImportRefused):
            raise
        reason = getattr(error, "strerror", None) or error
        words = _("%(file)s cannot be read: %(reason)s.")
        raise ImportRefused(words % {"file": path.name, "reason": reason}) from error


def _read_bytes(path: Path, most: int = MOST_BYTES, *, cut: bool = False) -> bytes:
    """What a regular file holds; a pipe or a device is not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ImportRefused(_("%s is neither a file nor a folder.") % path.name)
        data = file.read(most if cut else most + 1)
    _refuse_large(path.name, len(data), most)
    return data


def _refuse_large(name: str, size: int, most: int) -> None:
    if size > most:
        words = _("%(file)s is larger than %(most)d MiB.")
        raise ImportRefused(words % {"file": name, "most": most >> 20})


def _read_database(path: Path) -> Tables:
    _refuse_large(path.name, path.stat().st_size, MOST_DATABASE)
    return read_tables(path)


def _read_folder(folder: Path) -> Source:
    source, total = Source(folder.resolve().name, is_folder=True), 0
    for path in _choose(list(_list_files(folder))):
        if path.name in source.files:
            continue  # the one nearer to the top counts
        if path.suffix == ".db":
            source.tables |= _read_database(path)
            continue
        source.files[path.name] = _read_bytes(path)
        total += len(source.files[path.name])
        _refuse_large(source.name, total, MOST_IN_FOLDER)
    return source


def _list_files(folder: Path) -> Iterator[Path]:
    """The files in the places where they are looked for."""
    inside = folder.resolve()
    for place in PLACES:
        where = folder / place
        if not where.is_dir():
            continue
        for count, path in enumerate(sorted(where.iterdir()), start=1):
            if count > MOST_ENTRIES:
                words = _("The folder holds more than %d entries.")
                raise ImportRefused(words % MOST_ENTRIES)
            if not path.resolve().is_relative_to(inside):
                raise ImportRefused(_("%s is a link that leads out of the folder.") % path.name)
            if path.is_dir():
                continue
            if not path.is_file():
                words = _("%s is neither a file nor a folder.")
                raise ImportRefused(words % path.name)
            yield path


def _choose(paths: list[Path]) -> list[Path]:
    known = [one for one in paths if one.name in KNOWN or one.name.startswith(PROFILE)]
    return known or [one for one in paths if one.suffix.lower() in PLAIN]


def _read_zip(path: Path) -> Source:
    """A folder in a ZIP, or a character card in one."""
    _refuse_large(path.name, path.stat().st_size, MOST_IN_FOLDER)
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
            _unpack(archive, Path(folder))
            source = _read_folder(Path(folder))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
        words = _("%s is no ZIP file that can be read.")
        raise ImportRefused(words % path.name) from error
    source.name = path.name
    return source


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """The files of ``archive`` that are looked for, below the one folder that all may stand in."""
    entries = [one for one in archive.infolist() if not one.is_dir()]
    if len(entries) > MOST_ENTRIES:
        raise ImportRefused(_("The folder holds more than %d entries.") % MOST_ENTRIES)
    paths = [PurePosixPath(one.filename.replace("\\", "/")) for one in entries]
    tops = {one.parts[0] for one in paths if len(one.parts) > 1}
    is_wrapped = len(tops) == 1 and all(len(one.parts) > 1 for one in paths)
    below = tops.pop() if is_wrapped and not tops & {"data", "config"} else ""
    total = 0
    for entry, path in zip(entries, paths, strict=True):
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or mode not in (0, stat.S_IFREG):
            words = _("%s leads out of the folder, or is no file.")
            raise ImportRefused(words % path.name)
        inner = path.relative_to(below) if below else path
        if str(inner.parent) not in (".", *PLACES) or not _is_wanted(inner.name):
            continue
        with archive.open(entry) as packed:
            data = packed.read(MOST_IN_FOLDER - total + 1)
        total += len(data)
        most = MOST_IN_FOLDER if path.suffix == ".db" else MOST_BYTES
        _refuse_large(path.name, len(data), most)
        _refuse_large(_("The folder"), total, MOST_IN_FOLDER)
        target = folder / inner
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _is_wanted(name: str) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    return name in KNOWN or suffix in PLAIN or name.endswith("-wal")
