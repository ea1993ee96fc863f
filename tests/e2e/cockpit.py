"""The operator at the admin's pages, as a browser has it: over HTTP, with a session and a form."""

import json
import re
import time
from typing import Any
from weakref import WeakKeyDictionary

import lxml.html
import requests
from requests.cookies import RequestsCookieJar

from tests.environment import PATIENCE
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer

FIELDS = (
    "enabled",
    "timeout_seconds",
    "description",
    "mock_enabled",
    "mock_value",
    "allowed",
    "allowed_ids",
    "other_chats",
    "requires_approval",
    "calls_per_minute_person",
    "visibility",
    "pinned",
)
BOXES = ("enabled", "mock_enabled", "pinned")


#: The session of the administrator of each server: he signs in once.
_sessions: WeakKeyDictionary[LiveServer, RequestsCookieJar] = WeakKeyDictionary()


class Cockpit:
    """A logged-in administrator of ``server``. Every method blocks."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self._browser = requests.Session()
        self._browser.trust_env = False  # no proxy of the developer's
        if server in _sessions:
            self._browser.cookies = _sessions[server].copy()
            return
        form = {"username": ADMIN, "password": ADMIN_PASSWORD, "next": "/admin/"}
        self._post("/admin/login/", form)
        _sessions[server] = self._browser.cookies.copy()

    def configure(self, tool: str, **changes: Any) -> dict[str, Any]:
        """Save the form of one tool with ``changes``; returns what the changed fields held
        before."""
        (row,) = self._server.rows(
            f"SELECT id, {', '.join(FIELDS)} FROM tools_toolconfig WHERE name = ?", tool
        )
        fields = {name: row[name] for name in FIELDS} | changes
        # A browser leaves out the boxes that are not ticked.
        form = {name: value for name, value in fields.items() if name not in BOXES or value}
        self._post(f"/admin/tools/toolconfig/{row['id']}/change/", form)
        return {name: row[name] for name in changes}

    def save(self, path: str, form: dict[str, Any]) -> None:
        """Send the form of the page at ``path``, which is to accept it."""
        self._post(path, form)

    def try_out(self, tool: str, **arguments: str) -> str:
        """Run a tool by hand with ``arguments``; the page with what came of it."""
        form = {f"argument-{name}": value for name, value in arguments.items()}
        return self._post(f"{self._tool(tool)}/trial/", form, status=200)

    def take_back(self, tool: str) -> None:
        """Take back the last change of a tool, by the button on its page."""
        path = f"{self._tool(tool)}/change/"
        found = re.search(r'action="([^"]*/revert/[^"]*)"', self.page(path))
        assert found, f"nothing to take back at {path}"
        self._post(found[1], {}, page=path)

    def look_at(self, *tools: str) -> None:
        """Say of tools that are new or have changed that what they declare was looked at, once they
        are there."""
        places = ", ".join("?" * len(tools))
        end = time.monotonic() + 30
        while len(
            rows := self._server.rows(
                f"SELECT id FROM tools_toolconfig WHERE name IN ({places})", *tools
            )
        ) < len(tools):
            assert time.monotonic() < end, f"not there: {tools}"
            time.sleep(0.05)
        chosen = [row["id"] for row in rows]
        page = self._post(
            "/admin/tools/toolconfig/",
            {"action": "look", "_selected_action": chosen, "index": 0},
            status=200,
        )
        marks = re.findall(r'name="look" value="([^"]+)"', page)
        assert len(marks) == len(tools), f"not to be looked at: {tools}"
        self.say_looked(*marks)

    def say_looked(self, *marks: str) -> None:
        """Send what the page that shows declarations sends."""
        self._post(
            "/admin/tools/toolconfig/look/", {"look": marks}, page="/admin/tools/toolconfig/"
        )

    def own(self, account: int | str, owners: str) -> None:
        """Say to whom a bot belongs."""
        self.set_bot(account, owners=owners)

    def set_bot(self, account: int | str, **changes: str) -> None:
        """Save the form of one bot with ``changes``."""
        (row,) = self._server.rows(
            "SELECT id, owners, hear_voice, read_files FROM onebot_bot WHERE self_id = ?",
            str(account),
        )
        self._post(f"/admin/onebot/bot/{row.pop('id')}/change/", {**row, **changes})

    def set_gate(self, session_pk: int, value: str) -> None:
        """Say on the page of one chat whether its timing gate is on: ``true``, ``false``, or
        ``unknown`` for the bot's word."""
        self._post(
            f"/admin/agent/chatsession/{session_pk}/change/", {"state": "{}", "timing_gate": value}
        )

    def press(self, path: str, button: str, *, page: str) -> None:
        """Press a button of ``page`` that sends a form of its own to ``path``."""
        self._post(path, {button: ""}, page=page)

    def send_form(self, path: str, form: dict[str, str], *, page: str) -> None:
        """Send a form of ``page`` to ``path``, filled in."""
        self._post(path, form, page=page)

    def approve(self, approval: int) -> None:
        """Approve a call that waits."""
        self._post(f"/admin/agent/approval/{approval}/change/", {"decision": "approve"})

    def set_state(self, session_pk: int, state: dict[str, Any]) -> None:
        """Save the state on the page of one chat."""
        self._post(f"/admin/agent/chatsession/{session_pk}/change/", {"state": json.dumps(state)})

    def fill(self, path: str, /, **changes: Any) -> None:
        """Send the form of a page as it stands there but for ``changes``; False unticks a box."""
        answer = self._sent(path, changes)
        assert answer.status_code == 302, (
            f"{path} was not saved: {re.findall('errorlist.*', answer.text)}"
        )

    def refused(self, path: str, /, **changes: Any) -> str:
        """The page that comes back when the form is sent as in :meth:`fill`, and is not saved."""
        answer = self._sent(path, changes)
        assert answer.status_code == 200, f"{path} was saved: {answer.status_code}"
        return answer.text

    def _sent(self, path: str, changes: dict[str, Any]) -> requests.Response:
        shown: Any = lxml.html.document_fromstring(self.page(path))
        form = max(shown.forms, key=lambda form: len(form.fields))
        kept = [(name, value) for name, value in form.form_values() if name not in changes]
        sent = [
            (name, "on" if value is True else value)
            for name, value in changes.items()
            if value is not False
        ]
        return self._browser.post(
            self._server.url + path, kept + sent, allow_redirects=False, timeout=PATIENCE
        )

    def page(self, path: str) -> str:
        """A page as the administrator reads it, in the installation's language."""
        return self._browser.get(self._server.url + path, timeout=PATIENCE).text

    @property
    def cookie(self) -> str:
        """The header by which a WebSocket of the administrator's pages is known."""
        return f"sessionid={self._browser.cookies['sessionid']}"

    def sign_out(self) -> None:
        """End the session."""
        del _sessions[self._server]
        self._post("/admin/logout/", {}, page="/admin/", status=200)

    def close(self) -> None:
        self._browser.close()

    def _tool(self, name: str) -> str:
        (row,) = self._server.rows("SELECT id FROM tools_toolconfig WHERE name = ?", name)
        return f"/admin/tools/toolconfig/{row['id']}"

    def _post(self, path: str, form: dict[str, Any], *, page: str = "", status: int = 302) -> str:
        """Send a form that stands on ``page``, by default at its own address; what is answered."""
        url = self._server.url + path
        shown = self._browser.get(self._server.url + (page or path), timeout=PATIENCE)
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', shown.text)
        assert found, f"no form at {path}: {shown.status_code}"
        answer = self._browser.post(
            url, {**form, "csrfmiddlewaretoken": found[1]}, allow_redirects=False, timeout=PATIENCE
        )
        assert answer.status_code == status, (
            f"{path} was not saved: {re.findall('errorlist.*', answer.text)}"
        )
        return answer.text
