"""The file: an uncompressed zip of parts, with ``manifest.json`` that says what each has to be.

Nothing in a file is believed: names, sizes and sums are compared with the manifest, the manifest
with a schema, and with a passphrase also with the seal. Sizes are bounded before anything of that
size is read.
"""

import gzip
import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator
from packaging.version import Version
from typing_extensions import Buffer

from frostproject.backup import seal
from frostproject.backup.refused import BackupError, WrongPassphraseError, damaged
from tools.version import VERSION

FORMAT = 1
MANIFEST, TAG, SETTINGS = "manifest.json", "manifest.tag", "settings.json"
MANIFEST_BYTES = DIRECTORY_BYTES = 64 * 2**20
"""The most of the manifest and of the zip's own directory that is read: 200,000 files and more."""
FOLDERS = ("media", "received", "plugins")
_PART = re.compile(
    rf"rows/[a-z_]+\.[a-z_]+\.jsonl\.gz|{re.escape(SETTINGS)}"
    rf"|(?:{'|'.join(FOLDERS)})(?:/(?!\.\.?(?:/|\Z))[^/\\\x00-\x1f\x7f]{{1,255}})+"
)
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
_WORDS = {"type": "string", "maxLength": 200}
_TABLE = {
    "type": "object",
    "required": ["columns", "rows", "last_id"],
    "properties": {
        "columns": {"type": "array", "items": _WORDS, "uniqueItems": True},
        "rows": _NUMBER,
        "last_id": _NUMBER,
    },
}
_PART_FACTS = {
    "type": "array",
    "prefixItems": [_NUMBER, {"type": "string", "pattern": r"^[0-9a-f]{64}\Z"}, _NUMBER],
    "minItems": 3,
    "maxItems": 3,
}
_SCHEMA = Draft202012Validator(
    {
        "type": "object",
        "required": [
            *("format", "version", "made_at", "engine", "was_running", "migrations", "tables"),
            *("parts", "salt", "left_out"),
        ],
        "properties": {
            "version": {"type": "string", "pattern": r"^\d{1,4}(\.\d{1,4}){0,3}\Z"},
            "made_at": _WORDS,
            "engine": {"enum": ["sqlite", "postgresql"]},
            "was_running": {"type": "boolean"},
            "migrations": {"type": "array", "items": _WORDS},
            "tables": {"type": "object", "additionalProperties": _TABLE},
            "parts": {"type": "object", "additionalProperties": _PART_FACTS},
            "salt": {"type": "string", "pattern": r"^([0-9a-f]{32})?\Z"},
            "left_out": {"type": "array", "items": _WORDS},
        },
    }
)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def rows_part(label: str) -> str:
    """The part with the rows of the table ``label``."""
    return f"rows/{label}.jsonl.gz"


def is_part_name(name: str) -> bool:
    """Whether a part may have this name, which leads nowhere but into its folder."""
    return _PART.fullmatch(name) is not None


class _Measured(io.RawIOBase):
    """Passes on what is written or read, and knows how much it was and its sum. What is read may be
    ``most`` bytes."""

    def __init__(self, stream: IO[bytes], most: int = 0) -> None:
        self._stream, self._most = stream, most
        self.size, self.sum = 0, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        self._stream.write(data)
        self.size += memoryview(data).nbytes
        self.sum.update(data)
        return memoryview(data).nbytes

    def readinto(self, buffer: Buffer, /) -> int:
        data = self._stream.read(memoryview(buffer).nbytes)
        self.size += len(data)
        if self.size > self._most:
            raise damaged(_("a part is longer than it says"))
        self.sum.update(data)
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)


class ArchiveWriter:
    """A backup that is being written, sealed where there is a passphrase: as a context manager, to
    be ended by :meth:`finish`."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        salt = os.urandom(seal.SALT_BYTES) if passphrase else b""
        self._salt, self._seal = salt.hex(), seal.Seal(passphrase, salt) if passphrase else None
        self._parts: dict[str, tuple[int, str, int]] = {}

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, *_exc: object) -> None:
        with suppress(OSError):  # what could not be written is said by then
            self._zip.close()

    @contextmanager
    def part(self, name: str, changed_at: float = 0) -> Iterator[IO[bytes]]:
        """Where the content of a new part is written to."""
        with ExitStack() as streams:
            info = zipfile.ZipInfo(name)
            stream = streams.enter_context(self._zip.open(info, "w", force_zip64=True))
            if self._seal:
                sealed: Any = seal.SealedWriter(stream, self._seal.cipher(name))
                stream = streams.enter_context(sealed)
            if name.endswith(".gz"):
                packed: Any = gzip.GzipFile("", "wb", 1, stream, 0)
                stream = streams.enter_context(packed)
            measured: Any = _Measured(stream)
            yield measured
        self._parts[name] = measured.size, measured.sum.hexdigest(), max(0, int(changed_at))

    def finish(self, facts: Mapping[str, object]) -> None:
        """Write the manifest, with ``facts`` about the whole."""
        known = {"format": FORMAT, "version": VERSION, **facts}
        known |= {"salt": self._salt, "parts": self._parts}
        data = json.dumps(known, indent=1).encode()
        self._zip.writestr(MANIFEST, data)
        if self._seal:
            self._zip.writestr(TAG, self._seal.sign(MANIFEST, data))
        self._zip.close()


class _Bounded(io.FileIO):
    """A file of which nobody reads more at once than a directory may have."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = os.fstat(self.fileno()).st_size - self.tell()
        if size > DIRECTORY_BYTES:
            raise damaged(_("its directory"))
        return super().read(size) or b""


class Archive:
    """A backup that is read; as a context manager it is closed. Opening it raises BackupError for
    what is none, and WrongPassphraseError. ``manifest`` has been checked then; the contents of
    parts are, as they are read."""

    def __init__(self, path: Path, passphrase: str) -> None:
        self._file = _Bounded(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
            self._seal: seal.Seal | None = None
            self.manifest = self._load_manifest(passphrase)
            self._check_names()
        except _BROKEN as error:
            self._file.close()
            raise damaged(str(error)[:200]) from error
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_exc: object) -> None:
        self._file.close()

    @property
    def is_sealed(self) -> bool:
        return bool(self.manifest["salt"])

    @property
    def parts(self) -> dict[str, list[Any]]:
        """Size, sum and time of each part, by its name."""
        found: dict[str, list[Any]] = self.manifest["parts"]
        return found

    @contextmanager
    def part(self, name: str) -> Iterator[io.BufferedReader]:
        """The content of a part, which is compared with the manifest at the end. Raises
        BackupError."""
        size, expected, _time = self.parts[name]
        try:
            with ExitStack() as streams:
                stream: Any = streams.enter_context(self._zip.open(name))
                if self._seal:
                    stream = seal.SealedReader(stream, self._seal.cipher(name))
                    stream = io.BufferedReader(stream, seal.CHUNK)
                if name.endswith(".gz"):
                    stream = gzip.GzipFile(fileobj=stream)
                measured = _Measured(stream, size)
                reader: Any = io.BufferedReader(measured, 2**18)
                yield reader
                while reader.read(2**18):
                    pass
        except (*_BROKEN, gzip.BadGzipFile) as error:
            raise damaged(name) from error
        if (measured.size, measured.sum.hexdigest()) != (size, expected):
            raise damaged(name)

    def _load_manifest(self, passphrase: str) -> dict[str, Any]:
        data = self._small(MANIFEST, MANIFEST_BYTES)
        try:
            known = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise damaged(MANIFEST) from error
        is_known = isinstance(known, dict) and isinstance(known.get("format"), int)
        if is_known and known["format"] > FORMAT:
            raise _newer(str(known.get("version"))[:50])
        if not is_known or known["format"] != FORMAT or not _SCHEMA.is_valid(known):
            raise damaged(MANIFEST)
        if Version(known["version"]) > Version(VERSION):
            raise _newer(known["version"])
        if known["salt"]:
            self._seal = self._open_seal(known["salt"], passphrase, data)
        return dict(known)

    def _open_seal(self, salt: str, passphrase: str, manifest: bytes) -> seal.Seal:
        if not passphrase:
            raise WrongPassphraseError(_("The backup is sealed: it takes its passphrase."))
        opened = seal.Seal(passphrase, bytes.fromhex(salt))
        if not opened.proves(MANIFEST, manifest, self._small(TAG, seal.TAG_BYTES)):
            words = _("The passphrase is not that of the backup, or the file was changed.")
            raise WrongPassphraseError(words)
        return opened

    def _small(self, name: str, most: int) -> bytes:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise BackupError(_("The file is no backup of FrostAgent.")) from None
        if max(info.file_size, info.compress_size) > most:
            raise damaged(name)
        return self._zip.read(info)

    def _check_names(self) -> None:
        """What is in the zip is what the manifest names, once, as it is, and within its folders."""
        own = [MANIFEST, *([TAG] if self.is_sealed else [])]
        expected = {*own, *self.parts, *map(rows_part, self.manifest["tables"]), SETTINGS}
        if sorted(expected) != sorted(self._zip.namelist()):
            raise damaged(_("its directory"))
        for info in self._zip.infolist():
            is_plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
            if not is_plain or not (info.filename in own or is_part_name(info.filename)):
                raise damaged(ascii(info.filename)[:100])


def _newer(version: str) -> BackupError:
    words = _("The backup was made by version %(theirs)s, and this is %(ours)s: update this first.")
    return BackupError(words % {"theirs": ascii(version)[1:-1], "ours": VERSION})
