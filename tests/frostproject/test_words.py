"""Words of Django that the operator reads, in Chinese and English; and pages that are none."""

import json

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import translation

from frostproject.admin import permission_words
from tests.admin.record import logged_in, page
from tools.admin.settings_page import change_words
from tools.models import ToolConfigChange


@pytest.mark.django_db
def test_every_right_has_words_in_chinese():
    with translation.override("zh-hans"):
        words = [permission_words(right) for right in Permission.objects.all()]
        right = Permission.objects.get(codename="view_message")
        assert permission_words(right).startswith("消息: ")
    assert not [text for text in words if not text.partition(": ")[0]]


def test_a_history_calls_fields_what_the_form_calls_them():
    words = json.dumps([{"changed": {"fields": ["Owners", "Enabled"]}}])
    entry = ToolConfigChange(words=words)
    with translation.override("zh-hans"):
        assert change_words(entry) == "已修改主人 和 启用。"


@pytest.mark.parametrize("message", ["", "plain words", "[broken", '[{"changed": {}}]', "[1]"])
def test_a_history_of_any_form_is_shown(message: str):
    change_words(ToolConfigChange(words=message))


@pytest.mark.django_db
def test_a_row_that_is_not_there_looks_like_a_page_that_is_not_there():
    answer = logged_in().get("/admin/agent/nothing/")
    assert answer.status_code == 404
    text = answer.content.decode()
    assert "or it is not yours to see" in text
    assert 'id="nav-sidebar"' in text


@pytest.mark.django_db
def test_who_may_not_do_something_is_told_in_the_admins_look():
    answer = logged_in("viewer").post("/admin/agent/approval/1/change/", {})
    assert answer.status_code in (302, 403, 404)
    answer = logged_in("operator").get("/admin/auth/user/")
    assert answer.status_code == 403
    assert "Your account may not do this" in answer.content.decode()


def test_strangers_learn_nothing_from_a_page_that_is_not_there(client: Client, db: None):
    answer = client.get("/nowhere/<script>/")
    assert answer.status_code == 404
    assert "<script>/" not in answer.content.decode()
    assert "nav-sidebar" not in answer.content.decode()


@pytest.mark.django_db
def test_an_error_has_a_page_in_the_readers_language(monkeypatch: pytest.MonkeyPatch):
    browser = logged_in()
    browser.raise_request_exception = False
    monkeypatch.setattr(
        "agent.admin.approvals.ApprovalAdmin.get_changelist_instance",
        lambda *_: 1 / 0,
        raising=False,
    )
    answer = browser.get("/admin/agent/approval/", headers={"accept-language": "zh-CN"})
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.content.decode()


@pytest.mark.django_db
def test_scripts_of_the_admin_speak_chinese():
    text = logged_in().get("/admin/jsi18n/", headers={"accept-language": "zh-CN"}).content.decode()
    assert json.loads(text.split("const newcatalog = ")[1].split(";\n")[0])["Choose all %s"] == (
        "选择全部%s"
    )


@pytest.mark.django_db
def test_rights_are_chosen_by_words():
    text = page(logged_in(), "/admin/auth/group/add/")
    assert "Chat session: view" in text
