"""A browser at the admin: cookies, forms with their tokens, an address of its own."""

import re
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from tests.environment import PATIENCE
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer

LOGIN = "/admin/login/"
CHECK = "/admin/second-factor/check/"
OWN = "/admin/second-factor/"


#: Addresses of this machine that no test has used.
_fresh = (f"{a}.{b}.{c}" for a in range(1, 255) for b in range(1, 255) for c in range(1, 255))


class _From(HTTPAdapter):
    """Connections from one address of the loopback network."""

    def __init__(self, source: str) -> None:
        self._source = source
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, source_address=(self._source, 0), **options)


class Browser:
    """Blocks. ``proxied`` is the address that a proxy on this machine would name; without
    ``source``, each has a fresh one."""

    def __init__(
        self, server: LiveServer, source: str = "", *, proxied: str = "", host: str = ""
    ) -> None:
        self._url = f"http://{host}:{server.port}" if host else server.url
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.mount("http://", _From(source or f"127.{next(_fresh)}"))
        self.session.headers["Accept-Language"] = "en"
        if proxied:
            self.session.headers["X-Forwarded-For"] = proxied

    def get(self, path: str = "/admin/", **options: Any) -> requests.Response:
        return self.session.get(self._url + path, timeout=PATIENCE, **options)

    def post(self, path: str, form: Any = None, **options: Any) -> requests.Response:
        """Send ``form`` (a dict, or JSON with ``json=``) with the token of forgery protection."""
        headers = {"X-CSRFToken": self.token(), "Referer": self._url + path}
        return self.session.post(
            self._url + path, form, headers=headers, timeout=60, allow_redirects=False, **options
        )

    def token(self) -> str:
        if "csrftoken" not in self.session.cookies:
            self.get(LOGIN)
        return self.session.cookies["csrftoken"]

    def sign_in(self, name: str = ADMIN, password: str = ADMIN_PASSWORD) -> requests.Response:
        return self.post(LOGIN, {"username": name, "password": password, "next": "/admin/"})

    def is_in(self) -> bool:
        return self.get(allow_redirects=False).status_code == 200


def field(page: str, pattern: str) -> str:
    """What the group of ``pattern`` is in a page."""
    found = re.search(pattern, page)
    assert found, f"nothing like {pattern} in {page[-3000:]}"
    return found[1]
