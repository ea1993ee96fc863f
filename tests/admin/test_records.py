"""Records are shown and never changed."""

import pytest
from django.test import Client
from django.urls import reverse

from agent.models import Message, Step
from onebot.models import Bot, ClientEvent
from tests.admin.record import call_of, chat, page, run_for, said, step_of

RECORDS = (
    "agent_chatsession",
    "agent_message",
    "agent_run",
    "agent_step",
    "agent_toolcall",
    "onebot_clientevent",
)


@pytest.fixture(autouse=True)
def _one_of_each(db: None) -> None:
    message = said(chat(), raw={"post_type": "message", "nick": "冰"})
    call_of(step_of(run_for(message)))
    Bot.objects.create(self_id="10001", online=True)
    ClientEvent.objects.create(
        self_id="10001", post_type="notice", raw={"a": 1}, created_at=message.created_at
    )


def address(record: str, page_name: str, *args: int) -> str:
    return reverse(f"admin:{record}_{page_name}", args=args)


def pk_of(browser: Client, record: str) -> int:
    return int(browser.get(address(record, "changelist")).context["cl"].result_list[0].pk)


def test_a_record_has_a_list_and_a_page(browser: Client):
    for record in RECORDS:
        assert "1 " in page(browser, address(record, "changelist"))
        text = page(browser, address(record, "change", pk_of(browser, record)))
        assert 'name="_save"' not in text


def test_a_superuser_cannot_add_change_or_delete_a_record(browser: Client):
    for record in RECORDS:
        pk = pk_of(browser, record)
        assert browser.get(address(record, "add")).status_code == 403
        answer = browser.post(address(record, "change", pk), {"text": "forged", "title": "forged"})
        assert answer.status_code == (302 if record == "agent_chatsession" else 403)
        assert "forged" not in page(browser, address(record, "changelist"))
        assert browser.post(address(record, "delete", pk), {"post": "yes"}).status_code == 403


def test_a_list_offers_no_action(browser: Client):
    for record in RECORDS:
        posted = browser.post(
            address(record, "changelist"),
            {"action": "delete_selected", "_selected_action": [1], "index": 0},
        )
        assert posted.status_code == 200
        assert 'name="action"' not in posted.content.decode()


def test_of_a_bot_only_what_is_the_operators_can_be_changed(browser: Client):
    bot = Bot.objects.get()
    form = {
        "owners": "1, 2\n3",
        "hear_voice": "off",
        "read_files": "owners",
        "online": "",
        "self_id": "666",
    }
    browser.post(address("onebot_bot", "change", bot.pk), form)
    bot.refresh_from_db()
    assert (bot.self_id, bot.online, bot.owner_ids) == ("10001", True, frozenset({"1", "2", "3"}))
    assert (bot.hear_voice, bot.read_files) == ("off", "owners")


def test_an_owner_that_is_no_id_is_refused(browser: Client):
    answer = browser.post(
        address("onebot_bot", "change", Bot.objects.get().pk), {"owners": "1, <script>"}
    )
    assert "is not an id" in answer.content.decode()


def test_a_page_that_is_not_there_leads_back_with_a_word(browser: Client):
    response = browser.get(address("agent_run", "change", 9_999), follow=True)
    assert "doesn’t exist" in response.content.decode()


def test_a_message_shows_its_event_readably(browser: Client):
    message = Message.objects.get()
    text = page(browser, address("agent_message", "change", message.pk))
    assert "&quot;nick&quot;: &quot;冰&quot;" in text
    assert (
        f"/admin/agent/chatsession/{message.session_id}/change/"
        f"?around={message.pk}#m{message.pk}" in text
    )


def test_a_message_leads_to_the_runs_made_for_it(browser: Client):
    message = Message.objects.get()
    again = run_for(message, state="interrupted")
    text = page(browser, address("agent_message", "change", message.pk))
    assert address("agent_run", "change", again.pk) in text


def test_a_step_shows_what_the_model_was_sent_and_answered(browser: Client):
    Step.objects.update(
        request=[{"role": "user", "content": "你好"}],
        response={"role": "assistant", "content": "在"},
    )
    text = page(browser, address("agent_step", "change", Step.objects.get().pk))
    assert "你好" in text
    assert "&quot;content&quot;: &quot;在&quot;" in text
