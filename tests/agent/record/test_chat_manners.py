"""The rows of manners that switches and commands make and change."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from agent.domain.types import ChatAddress
from agent.models import Manners
from agent.record.settings.chat_manners import (
    change_chat_manners,
    end_silence_everywhere,
    find_chat_manners,
    silence_everything,
)
from agent.record.settings.manners import load_manners_table
from tests.agent.talk import GROUP
from tools.live_rows import ConfigVersion
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db
OTHER_ACCOUNT = ChatAddress("10002", "group", GROUP.peer_id)


def test_a_chat_without_a_row_gets_one_for_itself_and_its_account_alone():
    row = change_chat_manners(GROUP, silenced=True)
    assert (row.name, row.account, row.chats) == ("group:30001 (10001)", "10001", "group:30001")
    table = load_manners_table()
    assert table.find(GROUP).silenced_by == "group:30001 (10001)"
    assert table.find(OTHER_ACCOUNT).silenced_by == ""


def test_the_row_that_lists_exactly_the_chat_is_changed_and_no_other():
    Manners.objects.create(name="two", account="10001", chats="group:30001\ngroup:2")
    Manners.objects.create(name="all accounts", chats="group:30001")
    Manners.objects.create(name="off", account="10001", chats="group:30001", enabled=False)
    mine = Manners.objects.create(name="mine", account="10001", chats="onebot:group:30001")
    assert find_chat_manners(GROUP) == mine
    assert change_chat_manners(GROUP, wake_always=True) == mine
    assert Manners.objects.filter(wake_always=True).get() == mine


def test_a_chat_whose_number_begins_like_another_is_another():
    Manners.objects.create(name="long", account="10001", chats="group:300010")
    assert find_chat_manners(GROUP) is None


def test_a_name_that_is_taken_is_numbered():
    Manners.objects.create(name="group:30001 (10001)", enabled=False)
    assert change_chat_manners(GROUP, silenced=True).name == "group:30001 (10001) 2"


def test_a_change_is_on_record_with_its_author_and_counts_at_once():
    author, before = User.objects.create_user("ann"), ConfigVersion.current()
    change_chat_manners(GROUP, author, silenced=True)
    change = ToolConfigChange.objects.get()
    assert (change.author, change.after) == (author, {"silenced": True})
    assert ConfigVersion.current() > before


def test_a_value_that_no_form_would_accept_changes_nothing():
    with pytest.raises(ValidationError, match="23:00-07:30"):
        change_chat_manners(GROUP, quiet_hours="at night")
    assert not Manners.objects.exists()


def test_everything_is_silenced_by_one_row_and_speaks_again():
    silence_everything("everywhere")
    assert load_manners_table().find(GROUP).silenced_by == "everywhere"
    assert silence_everything("everywhere").pk == Manners.objects.get().pk
    Manners.objects.create(name="mine", chats="group:30001", silenced=True)
    assert [row.name for row in end_silence_everywhere()] == ["everywhere"]
    assert load_manners_table().find(GROUP).silenced_by == "mine"
    assert load_manners_table().find(OTHER_ACCOUNT).silenced_by == "mine"
    assert load_manners_table().find(ChatAddress("1", "private", "2")).silenced_by == ""
