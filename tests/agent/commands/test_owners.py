"""The commands for owners: what they change, who may give them, and the way back."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.domain.endpoint import ModelRole
from agent.domain.types import ChatAddress
from agent.models import Budget, Manners, ModelEndpoint, Persona, PersonaChoice
from agent.record.settings.manners import load_manners_table
from agent.record.settings.timed_silences import CLOCK, end_silences
from tests.agent.commands.conftest import OWNER, newest
from tests.agent.talk import GROUP, PRIVATE, give_owners, message
from tools.models import ToolConfigChange

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def row_of_the_chat() -> Manners:
    return Manners.objects.get(chats="group:30001")


@sync_to_async
def newest_change() -> ToolConfigChange:
    return ToolConfigChange.objects.latest("pk")


async def test_off_and_on_are_obeyed_from_the_next_message_on(room):
    room.model.answers = ["still here", "back"]
    assert "still here" in await room.say("hi", mentions_bot=True)
    await room.order("/off")
    assert await room.say("hi", mentions_bot=True) == ""
    said = await newest(direction="in")
    assert (said.reason, said.detail) == ("silenced", "group:30001 (10001)")
    assert await room.say("/help") == ""
    assert "again" in await room.order("/on")
    assert "back" in await room.say("hi", mentions_bot=True)
    assert (await newest_change()).made_by == f"owner {OWNER} in group:30001"


async def test_people_and_groups_of_official_bots_are_let_in_and_kept_out_like_others(room):
    owner, person = "00FF" * 8, "A1B2C3D4E5F60718293A4B5C6D7E8F90"
    give_owners(room.record.live, owner)
    chat = ChatAddress("10001", "group", "F00D5678" * 4)

    async def asked() -> bool:
        return "yes" in await room.say("hi", chat, sender_id=person, mentions_bot=True)

    room.model.answers = ["yes"] * 3
    assert await asked()
    assert person in await room.say(f"/deny [@{person}]", chat, sender_id=owner)
    assert not await asked()
    assert owner in await room.say(f"/deny {owner}", chat, sender_id=owner)  # refused
    assert person in await room.say(f"/allow {person}", chat, sender_id=owner)
    assert await asked()
    private = ChatAddress("10001", "private", owner)
    assert chat.peer_id in await room.say(f"/deny group:{chat.peer_id}", private, sender_id=owner)
    assert not await asked()


async def test_off_for_some_time_ends_by_itself(room):
    await room.order("/off")
    assert "为止" in await room.order("/off ３０分")
    assert (await newest_change()).after["silenced_until"]
    assert await room.record.submit_batched(end_silences, None) == 0
    await Manners.objects.aupdate(silenced_until=timezone.now())
    assert await room.record.submit_batched(end_silences, None) == 1
    row = await row_of_the_chat()
    assert (row.silenced, row.silenced_until) == (False, None)
    assert (await newest_change()).made_by == CLOCK
    assert "写法" in await room.order("/off soon")


async def test_a_silence_ends_on_time_after_many_edits_and_without_its_history(room):
    room.model.answers = ["back"]
    await room.order("/off 30m")
    for number in range(60):
        await room.order(f"/deny {20100 + number % 2}")
    await ToolConfigChange.objects.all().adelete()
    assert await room.say("hi", mentions_bot=True, message_id="88") == ""
    assert "by itself at" in await room.order("/status")
    assert "by itself at" in await room.order("[回复:88]/why", quoted_id="88")
    await Manners.objects.aupdate(silenced_until=timezone.now())
    assert "back" in await room.say("hi", mentions_bot=True)
    assert (await row_of_the_chat()).silenced


async def test_only_one_person_is_answered_for_some_time(room):
    room.model.answers = ["for me", "for all", "for 20002"]
    assert f"只回答 {OWNER}" in await room.order("/only 8小时")
    assert await room.say("hi", mentions_bot=True, message_id="88") == ""
    said = await newest(direction="in")
    assert (said.reason, said.detail) == ("only_one", "group:30001 (10001)")
    assert "for me" in await room.order("hi", mentions_bot=True)
    for order in ("/status", "[回复:88]/why"):
        told = await room.order(order, quoted_id="88" if "88" in order else "")
        assert "自动结束" in told or "by itself at" in told
    assert "again" in await room.order("/on")
    assert "for all" in await room.say("hi", mentions_bot=True)
    await room.order("/only [@20002] 明天")
    assert "for 20002" in await room.say("hi", mentions_bot=True, sender_id="20002")
    await Manners.objects.filter(only_person="20002").aupdate(only_until=timezone.now())
    assert await room.record.submit_batched(end_silences, None) == 1
    assert (await row_of_the_chat()).only_person == ""
    assert (await newest_change()).made_by == CLOCK


@pytest.mark.parametrize(
    ("order", "person"),
    [
        ("/only", OWNER),
        ("/only 30", OWNER),
        ("/only 20002", "20002"),
        ("/only 20002 2小时", "20002"),
        ("/only [@20003]30分", "20003"),
        ("/only 20002 20003", ""),
        ("/only me please", ""),
        ("/only 0", ""),
    ],
)
async def test_only_takes_a_person_and_a_time_or_none(room, order, person):
    said = await room.order(order)
    assert ("写法" in said or "It is written" in said) == (not person)
    assert ({row.only_person async for row in Manners.objects.exclude(only_person="")}) == (
        {person} if person else set()
    )


async def test_on_says_which_wider_row_still_silences(room):
    await Manners.objects.acreate(name="night", silenced=True)
    assert "“night”" in await room.order("/on")


async def test_people_are_denied_by_id_mention_or_quote_and_allowed_again(room):
    await room.say("buy now", sender_id="20003", message_id="77")
    assert "20002" in await room.order("/deny 20002")
    assert "20004" in await room.order("/deny[@20004]")
    assert "20003" in await room.order("[回复:77]/deny", quoted_id="77")
    assert (await row_of_the_chat()).denied_people.split() == ["20002", "20004", "20003"]
    assert await room.say("/help", sender_id="20003") == ""
    assert (await newest(direction="in")).reason == "blocked"
    assert "Answered here" in await room.order("/allow 20003")
    assert "/why" in await room.say("/help", sender_id="20003")
    assert "Owners are always answered" in await room.order(f"/deny {OWNER}")


@pytest.mark.parametrize("arguments", ["", "all", "[@all]", "20002 drop", "1; 2"])
async def test_what_names_nobody_denies_nobody(room, arguments):
    denied = await room.order(f"/deny {arguments}")
    assert ("Not answered" in denied) == (arguments == "1; 2")


async def test_allow_lists_people_only_where_a_list_counts(room):
    await room.order("/allow 20002")
    assert await Manners.objects.acount() == 1  # that of the prefix
    await Manners.objects.acreate(name="few", allowed_people="20005")
    await room.order("/allow 20002")
    assert (await row_of_the_chat()).allowed_people.split() == ["20005", "20002"]
    assert await room.say("/help") == ""
    assert "/why" in await room.say("/help", sender_id="20002")


async def test_a_group_is_allowed_or_denied_in_the_owners_private_chat_alone(room):
    private = {"chat": PRIVATE}
    assert "is not answered" in await room.order("/deny group:30007", **private)
    row = await Manners.objects.aget(chats="group:30007")
    assert (row.account, row.answered) == ("10001", "nobody")
    assert "is answered" in await room.order("/allow group:30007", **private)
    await row.arefresh_from_db()
    assert row.answered == "everybody"
    made = [change.made_by async for change in ToolConfigChange.objects.all()]
    assert made == [f"owner {OWNER} in private:20001"] * 2
    assert "written like this" in await room.order("/deny group:30007")
    assert await ToolConfigChange.objects.acount() == 2


async def test_a_persona_is_chosen_for_the_chat_and_taken_back(room):
    frost = await Persona.objects.acreate(name="小霜", prompt="p")
    assert "小霜" in await room.order("/persona")
    assert "小霜" in await room.order("/persona 小霜")
    assert [one async for one in PersonaChoice.objects.values_list("peer_id", "persona")] == [
        ("30001", frost.pk)
    ]
    change = await newest_change()
    assert (change.name, change.made_by) == ("小霜", f"owner {OWNER} in group:30001")
    room.model.answers = ["I am"]
    await room.say("who?", mentions_bot=True)
    assert (await newest(direction="in")).run.persona == "小霜"
    await room.order("/persona default")
    assert not await PersonaChoice.objects.aexists()
    assert "没有“nobody”" in await room.order("/persona nobody")


async def test_a_model_is_asked_first_in_the_chat(room):
    first = await ModelEndpoint.objects.acreate(name="Big", base_url="http://x/v1", model="big")
    await ModelEndpoint.objects.acreate(name="ears", can_chat=False, can_transcribe=True)
    assert "Big" in (told := await room.order("/model"))
    assert "ears" not in told
    assert "Big is asked first" in await room.order("/model big")
    starter = room.record.run_starter
    room.model.answers = ["yes"]
    await room.say("hi", mentions_bot=True)
    plan = room.conversations.build_run_plan(message("hi", GROUP))
    assert starter.find_persona(plan).endpoints == {ModelRole.CHAT: (first.pk, 0)}
    await room.order("/model default")
    assert (await sync_to_async(load_manners_table)()).find(GROUP).endpoint is None


async def test_a_budget_bounds_the_tokens_of_the_chat_a_day(room):
    assert "10,000 tokens a day" in await room.order("/budget 10,000")
    row = await Budget.objects.aget()
    assert (row.kind, row.subject, row.limit, row.unit) == ("chat", GROUP.place, 10_000, "tokens")
    assert "0 tokens of 10,000 tokens" in await room.order("/budget")
    await room.order("/budget ５００")
    await row.arefresh_from_db()
    assert (row.enabled, row.limit) == (True, 500)
    await room.order("/budget none")
    await row.arefresh_from_db()
    assert not row.enabled
    assert "written like this" in await room.order("/budget much")


async def test_others_change_nothing_and_a_group_is_not_told_so(room):
    assert await room.say("/off") == ""
    said = await newest(direction="in")
    assert (said.state, said.reason) == ("silent", "command")
    assert "Only owners" in await room.say("/off", mentions_bot=True)
    assert "Only owners" in await room.say("/off", PRIVATE)
    assert await Manners.objects.acount() == 1  # that of the prefix
    assert not await ToolConfigChange.objects.aexists()


@pytest.mark.parametrize(
    "said", [{"denied_people": "20002"}, {"answered": "listed", "listed_people": "20003"}]
)
async def test_allow_names_the_row_of_the_account_that_keeps_somebody_out(room, said):
    await Manners.objects.acreate(name="the whole account", account=GROUP.account, **said)
    found = await room.order("/allow 20002")
    assert "Still not answered, by “the whole account”: 20002" in found
    assert "Answered here: 20003" in await room.order("/allow 20003")
    assert f"Answered here: {OWNER}" in await room.order(f"/allow {OWNER}")
