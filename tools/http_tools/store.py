"""The rows of HTTP tools and secrets, read. Synchronous; for the thread that talks to the database."""

from tools.http_tools.rows import FIELDS, HttpToolSettings
from tools.http_tools.secrets import Secrets
from tools.models import HttpTool, Secret
from tools.secret_hosts import SecretHosts
from tools.vault import SealBroken, unseal


def load_tools() -> list[HttpToolSettings]:
    """Every row, switched off ones as well, by name."""
    return [HttpToolSettings(**values) for values in HttpTool.objects.values(*FIELDS).order_by("name")]


def load_secrets() -> Secrets:
    """Every secret; those that this installation's secret key does not open are ``broken``."""
    values: dict[str, str] = {}
    hosts: dict[str, SecretHosts] = {}
    broken = set()
    for name, sealed, named in Secret.objects.order_by("name").values_list("name", "sealed", "hosts"):
        hosts[name] = SecretHosts.stored(named)
        try:
            values[name] = unseal(sealed)
        except SealBroken:
            broken.add(name)
    return Secrets(values, frozenset(broken), hosts)
