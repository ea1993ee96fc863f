"""A copy of the database opens nothing: sessions are in it as digests, and the documented backup is
closed to others."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from frostproject.signin.session_store import SessionStore, digest_key

PAGE = "/admin/sign-in-sessions/"


@pytest.fixture
def browser(db: None) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("ann", password="a long password"))
    assert is_in(browser)
    return browser


def is_in(browser: Client) -> bool:
    return browser.get(PAGE).status_code == 200


def with_cookie(key: str) -> Client:
    browser = Client()
    browser.cookies["sessionid"] = key
    return browser


def test_a_key_read_from_the_table_opens_nothing(browser):
    (row,) = Session.objects.all()
    assert row.session_key == digest_key(browser.session.session_key)
    assert not is_in(with_cookie(row.session_key))
    assert is_in(browser)
    assert not with_cookie(row.session_key).session.get("_auth_user_id")
    assert Session.objects.get() == row


def test_a_session_is_renamed_signed_out_and_forgotten_under_its_digest(browser):
    before = str(browser.session.session_key)
    session = SessionStore(before)
    session.cycle_key()
    assert list(Session.objects.values_list("pk", flat=True)) == [digest_key(session.session_key)]
    assert SessionStore().exists(str(session.session_key))
    assert not is_in(with_cookie(before))
    session.flush()
    assert not Session.objects.exists()


async def test_sessions_are_the_same_for_async_code(transactional_db: None):
    session = SessionStore()
    await session.aset("a", 1)
    await session.asave()
    assert await Session.objects.aget(pk=digest_key(session.session_key))
    assert await SessionStore(session.session_key).aget("a") == 1
    assert await session.aexists(str(session.session_key))
    assert await SessionStore(digest_key(session.session_key)).aget("a") is None
    await session.aflush()
    assert not await Session.objects.aexists()


def test_who_was_signed_in_before_the_upgrade_stays_so(browser):
    key = browser.session.session_key
    Session.objects.update(session_key=key)  # as Django keeps it
    assert not is_in(with_cookie(key))
    migration = import_module("frostproject.migrations.0003_session_digests")
    migration.digest_keys(apps, SimpleNamespace(connection=connection))
    assert is_in(with_cookie(key))
