"""A certificate made for a test, with the two ends that use it."""

import datetime
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class ServerTls:
    """A certificate for ``name``: ``server`` shows it, ``client`` trusts it and nothing else."""

    def __init__(self, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key).public_bytes(serialization.Encoding.PEM)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.write_bytes(certificate + _pem(key))
            self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.server.load_cert_chain(path)
        self.client = ssl.create_default_context(cadata=certificate.decode())


def _certificate(name: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(
        subject, subject, key.public_key(), x509.random_serial_number(), now - day, now + day
    )
    names = x509.SubjectAlternativeName([x509.DNSName(name)])
    return builder.add_extension(names, critical=False).sign(key, hashes.SHA256())


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
