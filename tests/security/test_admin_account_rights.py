"""Who may change accounts does not give himself, or anybody, more than he has."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from agent.models import ChatGrant
from onebot.models import Bot
from tests.admin.record import ENGLISH, page

USERS = "/admin/auth/user/"


def browser_of(user: User) -> Client:
    client = Client(headers=ENGLISH)
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frostproject.signin.record.is_fresh", lambda request: True)


@pytest.fixture
def browser(db: None) -> Client:
    return browser_of(User.objects.create_superuser("root"))


@pytest.fixture
def clerk(db: None) -> User:
    """Somebody who may add and change accounts and groups, and nothing else."""
    user = User.objects.create_user("clerk", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    return user


def form(user: User, **changes: object) -> dict[str, object]:
    usual = {
        "username": user.username,
        "is_active": "on",
        "is_staff": "on",
        "chat_grants-TOTAL_FORMS": 0,
        "chat_grants-INITIAL_FORMS": 0,
    }
    return usual | changes


def grant(**fields: object) -> dict[str, object]:
    of_row = {f"chat_grants-0-{name}": value for name, value in fields.items()}
    return {"chat_grants-TOTAL_FORMS": 1, **of_row}


def test_a_clerk_gives_himself_neither_rights_nor_chats(clerk: User):
    every = Permission.objects.get(codename="view_every_chat")
    Bot.objects.create(self_id="10001")
    client, group = browser_of(clerk), Group.objects.create(name="all")
    rights = {"is_superuser": "on", "groups": [group.pk], "user_permissions": [every.pk]}
    chats = grant(account="10001", chat="", user=clerk.pk)
    answer = client.post(f"{USERS}{clerk.pk}/change/", form(clerk, **rights, **chats))
    assert answer.status_code == 302
    clerk = User.objects.get(pk=clerk.pk)
    assert not clerk.is_superuser
    assert not clerk.groups.exists()
    assert not clerk.has_perm("agent.view_every_chat")
    assert not ChatGrant.objects.exists()


def test_a_clerk_changes_no_group(clerk: User):
    client, group = browser_of(clerk), Group.objects.create(name="all")
    assert client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "x"}).status_code == 403
    assert client.post("/admin/auth/group/add/", {"name": "x"}).status_code == 403
    assert list(Group.objects.values_list("name", flat=True).filter(name__in=("x", "all"))) == [
        "all"
    ]


@pytest.mark.parametrize("more", ["superuser", "permission", "group", "chat", "inactive"])
def test_a_clerk_sets_no_password_of_somebody_who_may_do_more(clerk: User, more: str):
    other = User.objects.create_user("chief", password="before", is_staff=True)
    other.is_superuser, other.is_active = more == "superuser", more != "inactive"
    other.save()
    reads = Permission.objects.get(codename="view_message")
    if more in ("permission", "inactive"):
        other.user_permissions.add(reads)
    if more == "group":
        group = Group.objects.create(name="readers")
        group.permissions.add(reads)
        other.groups.add(group)
    if more == "chat":
        ChatGrant.objects.create(user=other, account="10001")
    client = browser_of(clerk)
    new = {"password1": "a long new password", "password2": "a long new password"}
    assert client.post(f"{USERS}{other.pk}/password/", new).status_code == 403
    assert client.post(f"{USERS}{other.pk}/change/", form(other)).status_code == 403
    assert client.post(f"{USERS}{other.pk}/delete/", {"post": "yes"}).status_code == 403
    act = {"action": "delete_selected", "_selected_action": other.pk, "post": "yes"}
    client.post(USERS, act)
    assert User.objects.get(pk=other.pk).check_password("before")


def test_a_clerk_sets_the_password_of_somebody_who_may_do_less(clerk: User):
    other = User.objects.create_user("junior", is_staff=True)
    new = {"password1": "a long new password", "password2": "a long new password"}
    answer = browser_of(clerk).post(f"{USERS}{other.pk}/password/", new)
    assert answer.status_code == 302
    assert User.objects.get(pk=other.pk).check_password("a long new password")


@pytest.mark.parametrize("chat", ["", "group:700", "private:20001"])
def test_a_superuser_gives_chats(browser: Client, chat: str):
    Bot.objects.create(self_id="10001")
    other = User.objects.create_user("owner", is_staff=True)
    row = grant(account="10001", chat=chat, user=other.pk)
    assert browser.post(f"{USERS}{other.pk}/change/", form(other, **row)).status_code == 302
    assert [(g.account, g.chat) for g in other.chat_grants.all()] == [("10001", chat)]
    assert f'value="{chat}"' in page(browser, f"{USERS}{other.pk}/change/")


@pytest.mark.parametrize(
    ("account", "chat"),
    [("10001", "700"), ("10001", "group:"), ("10001", "group:7 or 1"), ("10001", "room:7"),
     ("10001", "group:７００"), ("99999", "group:700"), ("", "group:700")],
)  # fmt: skip
def test_what_is_no_chat_is_not_given(browser: Client, account: str, chat: str):
    Bot.objects.create(self_id="10001")
    other = User.objects.create_user("owner", is_staff=True)
    row = grant(account=account, chat=chat, user=other.pk)
    assert browser.post(f"{USERS}{other.pk}/change/", form(other, **row)).status_code == 200
    assert not ChatGrant.objects.exists()


def new(**changes: object) -> dict[str, object]:
    secret = "a long enough one 42"
    return {"username": "friend", "password1": secret, "password2": secret, **changes}


def test_a_clerk_gives_a_new_account_neither_rights_nor_chats(clerk: User):
    Bot.objects.create(self_id="10001")
    client = browser_of(clerk)
    assert 'name="role"' not in page(client, f"{USERS}add/")
    for role in ("viewer", " everything"):
        User.objects.filter(username="friend").delete()
        client.post(f"{USERS}add/", new(role=role, chats="group:7"))
        friend = User.objects.get(username="friend")
        assert (friend.is_superuser, friend.groups.count()) == (False, 0)
        assert not ChatGrant.objects.exists()
