"""Files and folders on this machine, read within limits: what leads elsewhere or is no file is
refused."""

import os
import re
import stat
import tempfile
import zipfile
import zlib
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
#: A character card in a ZIP, and its pictures.
CARD = "card.json"
_ICON = re.compile(r"assets/icon/.+\.(png|jpe?g|webp|gif|avif)", re.IGNORECASE)
PLACES = ("", "data", "config", "data/config", "eval/dialogue")
#: What is read of a folder in which none of those stands.
PLAIN = (".json", ".png", ".yaml", ".yml")


@dataclass(slots=True)
class Source:
    """``files`` by name, without their folders; ``tables`` of the databases among them; ``icon``:
    the picture that stands beside a character card in a ZIP."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    tables: Tables = field(default_factory=dict)
    icon: bytes = b""


def read_source(path: Path) -> Source:
    """Everything of ``path`` that may be of use. Raises :class:`ImportRefused`."""
    try:
        if path.is_dir():
            return _read_folder(path)
        head = _read_bytes(path, len(MAGIC), is_cut=True)
        if head.startswith(MAGIC):
            return Source(path.name, tables=_read_database(path))
        if head.startswith(b"PK\x03\x04"):
            return _read_zip(path)
        return Source(path.name, {path.name: _read_bytes(path)})
    except (OSError, RuntimeError) as error:  # the latter of links that go in circles
        why, reason = _("%(file)s cannot be read: %(reason)s."), getattr(error, "strerror", None)
        raise ImportRefused(why, file=path.name, reason=reason or error) from error


def _read_bytes(path: Path, most: int = MOST_BYTES, *, is_cut: bool = False) -> bytes:
    """What a regular file holds; a pipe or a device is not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ImportRefused(_("%s is neither a file nor a folder.") % path.name)
        data = file.read(most if is_cut else most + 1)
    _refuse_large(path.name, len(data), most)
    return data


def _refuse_large(name: str, size: int, most: int) -> None:
    if size > most:
        why = _("%(file)s is larger than %(most)d MiB.")
        raise ImportRefused(why, file=name, most=most >> 20)


def _refuse_many(count: int) -> None:
    if count > MOST_ENTRIES:
        raise ImportRefused(_("The folder holds more than %d entries.") % MOST_ENTRIES)


def _read_database(path: Path) -> Tables:
    _refuse_large(path.name, path.stat().st_size, MOST_DATABASE)
    return read_tables(path)


def _read_folder(folder: Path) -> Source:
    source, paths = Source(folder.resolve().name), list(_list_files(folder))
    known = [one for one in paths if one.name in KNOWN or one.name.startswith(PROFILE)]
    for path in known or [one for one in paths if one.suffix.lower() in PLAIN]:
        if path.suffix == ".db":
            source.tables |= _read_database(path)
        elif path.name not in source.files:  # the one nearer to the top counts
            source.files[path.name] = _read_bytes(path)
            _refuse_large(source.name, sum(map(len, source.files.values())), MOST_IN_FOLDER)
    return source


def _list_files(folder: Path) -> Iterator[Path]:
    """The files in the places where they are looked for."""
    inside = folder.resolve()
    for where in (folder / place for place in PLACES if (folder / place).is_dir()):
        for count, path in enumerate(sorted(where.iterdir()), start=1):
            _refuse_many(count)
            if not path.resolve().is_relative_to(inside):
                raise ImportRefused(_("%s is a link that leads out of the folder.") % path.name)
            if path.is_file():
                yield path
            elif not path.is_dir():
                raise ImportRefused(_("%s is neither a file nor a folder.") % path.name)


def _read_zip(path: Path) -> Source:
    """A folder in a ZIP, or a character card in one."""
    _refuse_large(path.name, path.stat().st_size, MOST_IN_FOLDER)
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
            _unpack(archive, Path(folder))
            source = _read_folder(Path(folder))
            source.icon = _read_icon(archive) if CARD in source.files else b""
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
        raise ImportRefused(_("%s is no ZIP file that can be read.") % path.name) from error
    source.name = path.name
    return source


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """The files of ``archive`` that are looked for, below the one folder that all may stand in. No
    entry unpacks to more than the archive says."""
    entries = [one for one in archive.infolist() if not one.is_dir()]
    _refuse_many(len(entries))
    paths = [PurePosixPath(one.filename.replace("\\", "/")) for one in entries]
    tops = {one.parts[0] if len(one.parts) > 1 else "" for one in paths}
    below = tops.pop() if len(tops) == 1 and not tops & {"", "data", "config"} else ""
    total = 0
    for entry, path in zip(entries, paths, strict=True):
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or mode not in (0, stat.S_IFREG):
            raise ImportRefused(_("%s leads out of the folder, or is no file.") % path.name)
        inner = path.relative_to(below)
        if str(inner.parent) not in (".", *PLACES) or not _is_wanted(inner.name):
            continue
        total += entry.file_size
        is_database = path.suffix in (".db", ".db-wal")
        _refuse_large(path.name, entry.file_size, MOST_IN_FOLDER if is_database else MOST_BYTES)
        _refuse_large(_("The folder"), total, MOST_IN_FOLDER)
        (folder / inner).parent.mkdir(parents=True, exist_ok=True)
        (folder / inner).write_bytes(archive.read(entry))


def _read_icon(archive: zipfile.ZipFile) -> bytes:
    """The picture of a character; of several, the one that is called so, or the first."""
    icons = [one for one in archive.infolist() if _ICON.fullmatch(one.filename)]
    icons.sort(key=lambda one: PurePosixPath(one.filename).stem != "main")
    for entry in icons[:1]:
        _refuse_large(PurePosixPath(entry.filename).name, entry.file_size, MOST_BYTES)
        return archive.read(entry)
    return b""


def _is_wanted(name: str) -> bool:
    return name in KNOWN or name.lower().endswith((*PLAIN, "-wal"))
