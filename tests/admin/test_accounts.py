"""A new account of the admin is one form: its name, a password, what it may do, and which chats."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from agent.access import find_access
from agent.models import ChatGrant, ChatSession
from onebot.models import Bot
from tests.admin.record import CHINESE, logged_in, make_groups, page, refused

pytestmark = pytest.mark.django_db
USERS = "/admin/auth/user/"
SECRET = "a long enough one 42"


@pytest.fixture(autouse=True)
def _accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frostproject.signin.record.is_fresh", lambda request: True)
    make_groups()
    Group.objects.get_or_create(name="chat_owner")
    for account in ("10001", "10002"):
        Bot.objects.create(self_id=account)
        be_in(account, "700")
    be_in("10002", "701")


def be_in(account: str, peer: str) -> None:
    now = timezone.now()
    ChatSession.objects.create(
        platform="onebot", account=account, kind="group", peer_id=peer, last_message_at=now
    )


def add(browser: Client, **fields: object) -> str:
    """What the form says against it; "" when the account was made."""
    form = {"username": "ann", "password1": SECRET, "password2": SECRET, **fields}
    return refused(browser, f"{USERS}add/", form)


def test_one_form_makes_an_account_for_one_chat(browser: Client):
    assert add(browser, role="chat_owner", chats="group:701\nonebot:10001:group:700\n\n") == ""
    ann = User.objects.get(username="ann")
    assert (ann.is_staff, ann.is_superuser, ann.check_password(SECRET)) == (True, False, True)
    assert [group.name for group in ann.groups.all()] == ["chat_owner"]
    grants = ChatGrant.objects.filter(user=ann).values_list("account", "chat")
    assert set(grants) == {("10002", "group:701"), ("10001", "group:700")}
    assert not find_access(ann).is_everything
    listed = page(browser, USERS)
    assert "owner of chats" in listed
    assert "10001 group:700, 10002 group:701" in listed or "10002 group:701, 10001" in listed


@pytest.mark.parametrize(("role", "is_superuser"), [("viewer", False), (" everything", True)])
def test_other_roles_need_no_chats(browser: Client, role: str, is_superuser: bool):
    assert add(browser, role=role) == ""
    ann = User.objects.get(username="ann")
    assert ann.is_superuser == is_superuser
    assert ann.groups.filter(name=role).exists() != is_superuser


NONSENSE: list[tuple[dict[str, str], str]] = [
    ({}, "This field is required"),
    ({"role": "emperor"}, "is not one of the available choices"),
    ({"role": "chat_owner"}, "Name at least one"),
    ({"role": "chat_owner", "chats": "724083115"}, "is no chat"),
    ({"role": "chat_owner", "chats": "<script>:1"}, "“&lt;script&gt;:1” is no chat"),
    ({"role": "chat_owner", "chats": "group:700"}, "Which account?"),
    ({"role": "chat_owner", "chats": "onebot:999:group:700"}, "Which account?"),
    ({"role": "operator", "chats": "group:701"}, "they reach every chat anyway"),
    ({"role": "viewer", "password2": "another one 42"}, "password fields"),
    ({"role": "viewer", "password1": "ann", "password2": "ann"}, "too short"),
]


def test_what_makes_no_sense_is_refused_and_nothing_is_made(browser: Client):
    for fields, told in NONSENSE:
        assert told in add(browser, **fields)
        assert not User.objects.filter(username="ann").exists()


def test_an_account_says_what_it_may_do_in_plain_words():
    browser = logged_in()
    browser.defaults.update(Client(headers=CHINESE).defaults)
    ann = User.objects.create_user("ann", is_staff=True)
    text = page(browser, USERS) + page(browser, f"{USERS}{ann.pk}/change/")
    unplain = ("工作人员状态", "超级用户状态", "pbkdf2", "名字：", "姓氏", "加入日期")
    assert [words for words in unplain if words in text] == []
    assert f"{USERS}{ann.pk}/password/" in text
