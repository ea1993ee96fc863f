"""The page on which an administrator sets the password of an account."""

import pytest
from django.test import Client

from tests.admin.record import CHINESE, ENGLISH, page


@pytest.mark.parametrize(
    ("language", "told"),
    [
        (ENGLISH, ("Whether the user will be able to", "the current password of this account")),
        (CHINESE, ("用户是否能够使用密码进行认证", "这个账户现在的密码会丢失")),
    ],
)
def test_what_it_means_to_have_no_password_is_said_in_the_readers_language(
    admin_user, language, told
):
    browser = Client(headers=language)
    browser.force_login(admin_user)
    text = page(browser, f"/admin/auth/user/{admin_user.pk}/password/")
    assert [words for words in told if words not in text] == []
    assert '<ul id="id_unusable_warning" class="messagelist"><li class="warning">' in text
