"""Parts of a backup under a passphrase: AES-256-GCM in chunks (STREAM), keys by scrypt.

Each part has a key of its own, derived from its name; each chunk is numbered, and the last one
says so. A part that was cut, lengthened, swapped or put under another name does not open.
"""

import io
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from typing_extensions import Buffer

from frostproject.backup.refused import damaged

SALT_BYTES, TAG_BYTES, CHUNK = 16, 16, 2**20
_PURPOSE = b"frostagent backup v1 "


class Seal:
    """What a passphrase makes of a salt. It takes 0.2 s and 32 MiB, whatever a file says."""

    def __init__(self, passphrase: str, salt: bytes) -> None:
        scrypt = Scrypt(salt=salt, length=32, n=2**15, r=8, p=1)
        self._secret = scrypt.derive(passphrase.encode())

    def cipher(self, part: str) -> AESGCM:
        info = _PURPOSE + part.encode()
        return AESGCM(HKDF(SHA256(), length=32, salt=None, info=info).derive(self._secret))

    def sign(self, part: str, data: bytes) -> bytes:
        """What proves that ``data`` was written by who knew the passphrase."""
        return self.cipher(part).encrypt(bytes(12), b"", data)

    def proves(self, part: str, data: bytes, tag: bytes) -> bool:
        try:
            return self.cipher(part).decrypt(bytes(12), tag, data) == b""
        except InvalidTag:
            return False


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11) + bytes([is_last])


class SealedWriter(io.RawIOBase):
    """What is written goes sealed into ``raw``, which stays open."""

    def __init__(self, raw: IO[bytes], cipher: AESGCM) -> None:
        self._raw, self._cipher = raw, cipher
        self._held, self._number = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        self._held += data
        while len(self._held) > CHUNK:
            self._put(bytes(self._held[:CHUNK]), is_last=False)
            del self._held[:CHUNK]
        return memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._put(bytes(self._held), is_last=True)

    def _put(self, chunk: bytes, *, is_last: bool) -> None:
        self._raw.write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, None))
        self._number += 1


class SealedReader(io.RawIOBase):
    """What was sealed into ``raw``. Raises BackupError where it is not whole."""

    def __init__(self, raw: IO[bytes], cipher: AESGCM) -> None:
        self._raw, self._cipher, self._number = raw, cipher, 0
        self._plain = memoryview(b"")
        self._ahead = raw.read(CHUNK + TAG_BYTES)
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        if not self._plain and not self._is_over:
            self._open_next()
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._plain))
        target[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def _open_next(self) -> None:
        chunk, self._ahead = self._ahead, self._raw.read(CHUNK + TAG_BYTES)
        self._is_over = not self._ahead
        nonce = _nonce(self._number, is_last=self._is_over)
        try:
            self._plain = memoryview(self._cipher.decrypt(nonce, chunk, None))
        except InvalidTag as error:
            raise damaged("seal") from error
        self._number += 1
