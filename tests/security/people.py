"""People at the admin of a live server: signed in, with forms sent as a browser or a script of
theirs would."""

import json
import re
import sys
from html import unescape
from typing import Any

import requests

from tests import zygote
from tests.environment import PATIENCE
from tests.live_server import LiveServer

PASSWORD = "a long password of a colleague"
_MAKE = """
import json, sys, django
django.setup()
from django.contrib.auth.models import Group, Permission, User
for name, group in json.load(sys.stdin):
    account = User.objects.create_user(
        name, password=sys.argv[1], is_staff=True, is_superuser=group == "superuser"
    )
    if group == "superuser":
        account.user_permissions.add(Permission.objects.get(codename="run_commands"))
    else:
        account.groups.add(Group.objects.get(name=group))
"""


def accounts(server: LiveServer, **groups: str) -> None:
    """Give ``server`` a signed-up colleague of each name, in that group; a "superuser" may run
    commands as well. Blocks."""
    run(server, _MAKE, list(groups.items()), PASSWORD)


def run(server: LiveServer, program: str, given: Any, *arguments: str) -> None:
    """Run ``program`` on the server's database, as another process of the installation. Blocks."""
    command = [sys.executable, "-c", program, *arguments]
    zygote.run(command, server._environment(), json.dumps(given), check=True)


class Person:
    """Somebody signed in to the admin of ``server``. Every method blocks."""

    def __init__(self, server: LiveServer, name: str, password: str = PASSWORD) -> None:
        self._server = server
        self._browser = requests.Session()
        self._browser.trust_env = False
        self._browser.headers["Accept-Language"] = "en"
        answer = self.send("/admin/login/", username=name, password=password, next="/admin/")
        assert answer.status_code == 302, f"{name} cannot sign in"

    def send(self, path: str, /, _files: Any = None, **form: Any) -> requests.Response:
        """POST ``form``, past any page: with a token for it, whatever the person may do."""
        if "csrftoken" not in self._browser.cookies:
            self._browser.get(f"{self._server.url}/admin/login/", timeout=PATIENCE)
        token = self._browser.cookies["csrftoken"]
        return self._browser.post(
            self._server.url + path,
            {**form, "csrfmiddlewaretoken": token},
            files=_files,
            allow_redirects=False,
            timeout=PATIENCE,
        )

    def saves(self, path: str, /, **form: Any) -> None:
        """POST ``form`` and expect that it is saved."""
        assert not (said := self.refused(path, **form)), said

    def refused(self, path: str, /, **form: Any) -> str:
        """What the page says against ``form``; "" where it was saved."""
        answer = self.send(path, **form)
        if answer.status_code == 302:
            return ""
        found = re.findall(r'<ul class="errorlist[^>]*>(.*?)</ul>', answer.text, re.DOTALL)
        return unescape(" ".join(found)) or f"status {answer.status_code}"

    def page(self, path: str) -> str:
        """A page as this person reads it."""
        answer = self._browser.get(self._server.url + path, timeout=PATIENCE)
        return (
            unescape(answer.text) if answer.status_code == 200 else f"status {answer.status_code}"
        )

    def cookies(self) -> dict[str, str]:
        """Those that say who it is, and that forms are their own."""
        return {name: self._browser.cookies[name] for name in ("sessionid", "csrftoken")}

    def close(self) -> None:
        self._browser.close()
