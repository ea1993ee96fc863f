"""A passkey in software: one P-256 key, "none" attestation, a counter (WebAuthn level 2)."""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

USER_PRESENT, USER_VERIFIED, HAS_KEY = 0x01, 0x04, 0x40


def written(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def read(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Authenticator:
    """``origin`` is the page that the browser would name."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.counter = 0
        self.flags = USER_PRESENT | USER_VERIFIED
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._id = secrets.token_bytes(32)
        self._domain = ""
        self._user = b""

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """What ``navigator.credentials.create`` would give."""
        self._domain, self._user = options["rp"]["id"], read(options["user"]["id"])
        numbers = self._key.public_key().public_numbers()
        key = {
            1: 2,
            3: -7,
            -1: 1,
            -2: numbers.x.to_bytes(32, "big"),
            -3: numbers.y.to_bytes(32, "big"),
        }
        data = (
            self._data(HAS_KEY)
            + bytes(16)
            + len(self._id).to_bytes(2, "big")
            + self._id
            + cbor2.dumps(key)
        )
        statement = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options["challenge"])
        return self._credential(
            {"clientDataJSON": written(client), "attestationObject": written(statement)}
        )

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """What ``navigator.credentials.get`` would give."""
        self.counter += 1
        data, client = self._data(), self._client("webauthn.get", options["challenge"])
        signature = self._key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        parts = {
            "clientDataJSON": client,
            "authenticatorData": data,
            "signature": signature,
            "userHandle": self._user,
        }
        return self._credential({name: written(value) for name, value in parts.items()})

    def _data(self, flags: int = 0) -> bytes:
        return (
            hashlib.sha256(self._domain.encode()).digest()
            + bytes([self.flags | flags])
            + self.counter.to_bytes(4, "big")
        )

    def _client(self, kind: str, challenge: str) -> bytes:
        return json.dumps(
            {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        ).encode()

    def _credential(self, response: dict[str, str]) -> dict[str, Any]:
        name = written(self._id)
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "clientExtensionResults": {},
            "response": response,
        }
