"""The page of the system: all settings, what may be said there and by whom, and what is refused."""

import re
from html import unescape

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission, User
from django.test import Client

from agent.models import Installation, OperatorAct
from agent.models.installation import VARIABLES
from frostproject.configuration.env import SECRETS
from tests.admin.record import faults, logged_in, page
from tests.environment import PROJECT
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
PAGE = "/admin/agent/installation/"
PROGRAMS = "mcp_allowed_commands"


def send(browser: Client, **fields: object) -> str:
    return unescape(browser.post(PAGE, fields, follow=True).content.decode())


@pytest.fixture
def chief(monkeypatch: pytest.MonkeyPatch) -> Client:
    """A superuser who may run commands, and has just given the password."""
    monkeypatch.setattr("frostproject.signin.record.is_fresh", lambda request: True)
    browser = logged_in()
    user = User.objects.get(username="user-")
    user.user_permissions.add(Permission.objects.get(codename="run_commands"))
    return browser


def test_every_setting_is_listed_and_no_secret_is_shown(browser: Client, settings):
    for name in SECRETS:
        setattr(settings, name, f"value-of-{name}")
    settings.UPSTREAM_ENDPOINT = "https://ann:value-of-login@api.example.com/v1"
    text = page(browser, PAGE)
    example = (PROJECT / ".env.example").read_text(encoding="utf-8")
    names = set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    assert set(re.findall(r'<tr id="([A-Z_]+)">', text)) == names
    assert "value-of-" not in text
    rows = text.partition('id="all-settings"')[2].split("<tr ")
    without = [row for row in rows[2:] if "<a href" not in row and ".env alone." not in row]
    assert without == []


def test_a_setting_says_where_its_value_comes_from(browser: Client, settings):
    settings.SETTING_SOURCES = {"MEMORY_CHARS": "file", "EVENT_KEEP_DAYS": "process"}
    settings.MEMORY_CHARS = 900
    text = page(browser, PAGE)
    assert "holds: 900" in text
    assert "MEMORY_CHARS in .env" in text
    assert "EVENT_KEEP_DAYS in the environment" in text
    send(browser, memory_chars="800")
    row = page(browser, PAGE).partition('<tr id="MEMORY_CHARS">')[2].partition("</tr>")[0]
    assert ">800<" in row
    assert row.count("this page") == 2


NONSENSE = [
        *((name, value) for name in ("record_keep_days", "event_keep_days", "media_keep_days")
          for value in ("-1", "1000000000", "1.5", "ten", "9" * 30)),
        ("media_keep_gib", "nan"), ("media_keep_gib", "-0.1"), ("approval_timeout", "0"),
        ("approval_timeout", "inf"), ("picture_max_side", "0"), ("language_code", "tlh"),
        ("tokens_per_day", "9" * 20), ("memory_chars", "100001"),
        *((PROGRAMS, value) for value in (
            "npx -y", "npx;id", "$(id)", "a|b", "../x", "bin/x", "/", "//x", "/opt/../x", "`id`",
            "npx\x00", "ｎｐｘ", "-rf", "a" * 201, "\n".join(f"p{n}" for n in range(51)), "<b>")),
    ]  # fmt: skip


def test_what_makes_no_sense_is_refused_beside_its_field(chief: Client):
    for name, value in NONSENSE:
        assert list(faults(chief, PAGE, {name: value})) == [name], value
        row = Installation.objects.get()
        assert getattr(row, name) in (None, "")


def test_the_page_takes_what_the_environment_takes(chief: Client):
    low = {name.lower(): f"{low:g}" for name, (low, _most) in django_settings.SETTING_RANGES.items()
           if name in VARIABLES}  # fmt: skip
    assert chief.post(PAGE, low).status_code == 302
    row = Installation.objects.get()
    assert {name: f"{getattr(row, name):g}" for name in low} == low


def test_programs_are_allowed_by_a_superuser_with_the_right_and_a_fresh_password(chief: Client):
    assert send(chief, **{PROGRAMS: "npx\r\n/opt/mcp/server"})
    assert Installation.objects.get().mcp_allowed_commands == "npx\r\n/opt/mcp/server"
    change = ToolConfigChange.objects.latest("pk")
    assert (str(change.author), [*change.after]) == ("user-", [PROGRAMS])


@pytest.mark.parametrize("who", ["operator", "", "run_commands"])
def test_others_change_no_programs_and_take_none_back(chief: Client, monkeypatch, who: str):
    send(chief, **{PROGRAMS: "npx"})
    send(chief, **{PROGRAMS: "-"})
    change = ToolConfigChange.objects.latest("pk")
    fresh = who != "run_commands"
    monkeypatch.setattr("frostproject.signin.record.is_fresh", lambda request: fresh)
    User.objects.filter(username="user-").update(username="chief")
    browser = chief if who == "run_commands" else logged_in(who)
    text = page(browser, PAGE)
    assert re.search(rf'<textarea name="{PROGRAMS}"[^>]* disabled', text)
    assert ("/admin/sign-in-again/" in text) == (who == "run_commands")
    send(browser, **{PROGRAMS: "sh"})
    assert browser.post(f"{PAGE}1/revert/{change.pk}/").status_code == 403
    assert Installation.objects.get().mcp_allowed_commands == "-"


def test_take_back_is_offered_to_those_who_may(chief: Client):
    send(chief, record_keep_days="400")
    change = ToolConfigChange.objects.latest("pk")
    address = f"{PAGE}1/revert/{change.pk}/"
    operator = logged_in("operator")
    assert address in page(chief, PAGE)
    assert address not in page(operator, PAGE)
    send(operator, memory_chars="700")
    assert f"{PAGE}1/revert/{change.pk + 1}/" in page(operator, PAGE)


def test_an_operator_sets_no_days_after_which_the_record_is_erased(chief: Client):
    send(chief, record_keep_days="400")
    operator = logged_in("operator")
    send(operator, record_keep_days="1", event_keep_days="1", memory_chars="700")
    row = Installation.objects.get()
    assert (row.record_keep_days, row.event_keep_days, row.memory_chars) == (400, None, 700)


def test_who_may_not_change_settings_changes_none():
    for group in ("viewer", "chat_owner"):
        assert logged_in(group).post(PAGE, {"memory_chars": "1"}).status_code == 403
    assert not Installation.objects.exclude(memory_chars=None).exists()


def test_of_two_who_save_at_once_the_second_is_told(browser: Client):
    seen = re.search(r'name="row_seen" value="(\w+)"', page(browser, PAGE))
    assert seen
    send(browser, memory_chars="700", row_seen=seen[1])
    text = send(browser, memory_chars="800", row_seen=seen[1])
    assert "Somebody else has saved this row" in text
    assert "700" in text
    assert Installation.objects.get().memory_chars == 700


@pytest.fixture
def backups(settings, tmp_path):
    settings.BACKUP_DIR = tmp_path / "backups"
    settings.BACKUP_DIR.mkdir()
    for name in ("daily-2026-01-01-000000.zip", "frostagent-2026-01-01-000000.zip"):
        (settings.BACKUP_DIR / name).write_bytes(b"all")
    (tmp_path / "secret_key").write_text("of the server")
    (settings.BACKUP_DIR / "daily-link.zip").symlink_to(tmp_path / "secret_key")
    return settings.BACKUP_DIR


async def test_a_daily_backup_is_downloaded_by_a_superuser_and_is_on_record(chief, backups):
    text = await sync_to_async(page)(chief, PAGE)
    (address,) = re.findall(r'href="(/admin/backups/[^"]+)"', text)
    answer = await sync_to_async(chief.get)(address)
    assert b"".join([piece async for piece in answer.streaming_content]) == b"all"
    assert "attachment" in answer["Content-Disposition"]
    act = await OperatorAct.objects.aget()
    assert (act.kind, act.detail) == ("export", "daily-2026-01-01-000000.zip")


@pytest.mark.parametrize(
    "name",
    [
        *("frostagent-2026-01-01-000000.zip", "daily-link.zip", "daily-9.zip", "..%2Fsecret_key"),
        *("%2e%2e%2fsecret_key", "daily-%2F..%2F..%2Fsecret_key", "..", "%00"),
    ],
)
def test_no_other_file_is_downloaded(name, chief, backups):
    assert chief.get(f"/admin/backups/{name}").status_code == 404


@pytest.mark.parametrize(
    ("group", "is_fresh", "status"), [("", False, 302), ("operator", True, 403)]
)
def test_a_download_wants_a_superuser_and_a_recent_password(
    group, is_fresh, status, backups, monkeypatch
):
    monkeypatch.setattr("frostproject.signin.record.is_fresh", lambda request: is_fresh)
    browser = logged_in(group)
    assert ("daily-2026" in page(browser, PAGE)) == (group == "")
    answer = browser.get("/admin/backups/daily-2026-01-01-000000.zip")
    assert answer.status_code == status
    assert "/sign-in-again/" in answer.get("Location", "/sign-in-again/")
    assert not OperatorAct.objects.exists()
