"""The rows of secrets, read. Synchronous; for the thread that talks to the database."""

from tools.secrets.encryption import DecryptionError, decrypt
from tools.secrets.hosts import SecretHosts
from tools.secrets.masked import SecretValues
from tools.secrets.models import Secret


def load_secrets() -> SecretValues:
    """Every secret; ``undecryptable`` are those stored under another secret key."""
    values: dict[str, str] = {}
    hosts: dict[str, SecretHosts] = {}
    broken = set()
    for name, sealed, named in Secret.objects.order_by("name").values_list(
        "name", "sealed", "hosts"
    ):
        hosts[name] = SecretHosts.stored(named)
        try:
            values[name] = decrypt(sealed)
        except DecryptionError:
            broken.add(name)
    return SecretValues(values, frozenset(broken), hosts)
