"""Acts in a group: what is sent, who is asked, and against whom nothing is done."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.builtin_tools import acts
from agent.domain.client_actions import ActionOutcome
from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message, Run, Step, ToolCall
from agent.run.services import RunServices
from agent.run.tool_results import call_outcome
from tests.agent.acting import ROLES, STRANGER, ScriptedClient, act_registry, rows
from tests.agent.talk import GROUP, PRIVATE
from tools.contract import RecordedCall, ToolExecutionContext, ToolExecutionResult, ToolInvocation

pytestmark = pytest.mark.django_db(transaction=True)
BOT, BOT_OWNER, OWNER, ADMIN, ADMIN_2, MEMBER, ASKER = (
    *("10001", "20009", "20004", "20005", "20006", "20002", "20001"),
)
OWNS = {**ROLES, BOT: "owner", OWNER: "member"}
HERE = {"group_id": GROUP.peer_id}
ON_MEMBER = {**HERE, "user_id": MEMBER}


class Chat:
    """A chat on record, in which calls are made as the run loop makes them."""

    def __init__(self, record: Any, client: ScriptedClient, where: ChatAddress = GROUP) -> None:
        self.record, self.client, self.where = record, client, where
        self.rows: dict[str, Any] = rows()
        self.believes = True
        now = timezone.now()
        self.session = ChatSession.objects.create(
            account=where.account, kind=where.kind, peer_id=where.peer_id, last_message_at=now
        )
        said = {"session": self.session, "state": "answered", "created_at": now}
        self.asked = Message.objects.create(
            direction="in", message_id="71", sender_id=ASKER, text="please", **said
        )
        Message.objects.create(
            direction="in", message_id="72", sender_id=MEMBER, text="spam", **said
        )
        Message.objects.create(direction="out", message_id="73", sender_id="", text="own", **said)
        self.run = Run.objects.create(
            session=self.session, message=self.asked, origin="chat", started_at=now
        )

    def context(self, user: str, role: str, **metadata: Any) -> ToolExecutionContext:
        sender = SimpleNamespace(
            chat=self.where, session_pk=self.session.pk, journal=SimpleNamespace(record=self.record)
        )
        is_group = self.where.kind == "group"
        return ToolExecutionContext(
            session_id=self.where.address,
            is_group_chat=is_group,
            group_id=self.where.peer_id if is_group else "",
            user_id=user,
            sender_role=role,
            owners=frozenset({BOT_OWNER}),
            own_role=self.client.roles.get(BOT, ""),
            believes_sender=self.believes,
            metadata={"account": BOT, "message_id": "71", **metadata},
            services=RunServices(sender=cast("Any", sender), actions=self.client),
        )

    async def call(
        self,
        tool: str,
        *,
        user: str = ASKER,
        role: str = "member",
        approved: bool = False,
        **given: Any,
    ) -> ToolExecutionResult:
        pk = await sync_to_async(self._call_row)(tool)
        registry = act_registry(self.record, self.rows)
        invocation = ToolInvocation(tool, given, call_pk=pk)
        return await registry.invoke(invocation, self.context(user, role), approved=approved)

    def _call_row(self, tool: str) -> int:
        now = timezone.now()
        step = Step.objects.create(
            run=self.run, number=Step.objects.count() + 1, request=[], tools=[], created_at=now
        )
        return ToolCall.objects.create(
            run=self.run, step=step, call_id="c", tool_name=tool, state="running", created_at=now
        ).pk


@pytest.fixture
async def chat(record):
    return await sync_to_async(Chat)(record, ScriptedClient())


SENT = [
    (
        "mute_member",
        {"user_id": MEMBER, "minutes": 43_200},
        "set_group_ban",
        {**ON_MEMBER, "duration": 2_592_000},
    ),
    ("unmute_member", {"user_id": MEMBER}, "set_group_ban", {**ON_MEMBER, "duration": 0}),
    ("mute_group", {"on": False}, "set_group_whole_ban", {**HERE, "enable": False}),
    (
        "kick_member",
        {"user_id": MEMBER},
        "set_group_kick",
        {**ON_MEMBER, "reject_add_request": False},
    ),
    (
        "kick_member",
        {"user_id": MEMBER, "reject_again": True},
        "set_group_kick",
        {**ON_MEMBER, "reject_add_request": True},
    ),
    ("recall_message", {"message_id": "72"}, "delete_msg", {"message_id": "72"}),
    (
        "set_member_card",
        {"user_id": MEMBER, "card": " a\n b "},
        "set_group_card",
        {**ON_MEMBER, "card": "a b"},
    ),
    (
        "set_member_title",
        {"user_id": MEMBER, "title": "x"},
        "set_group_special_title",
        {**ON_MEMBER, "special_title": "x", "duration": -1},
    ),
    ("set_essence", {"message_id": "72"}, "set_essence_msg", {"message_id": "72"}),
    ("set_essence", {"message_id": "72", "on": False}, "delete_essence_msg", {"message_id": "72"}),
    ("announce", {"text": "hi"}, "_send_group_notice", {**HERE, "content": "hi"}),
    (
        "delete_file",
        {"file_id": "/x-y"},
        "delete_group_file",
        {**HERE, "file_id": "/x-y", "busid": 102},
    ),
]
ASK_FIRST = {
    "mute_member",
    "mute_group",
    "kick_member",
    "set_member_title",
    "announce",
    "delete_file",
}


@pytest.mark.parametrize(("tool", "given", "action", "params"), SENT)
async def test_an_approved_act_is_sent_once(chat, tool, given, action, params):
    chat.client.roles = OWNS
    result = await chat.call(tool, approved=True, **given)
    assert result.success, result.error_message
    assert chat.client.acts == [(action, params)]


@pytest.mark.parametrize(("tool", "given", "action", "params"), SENT)
async def test_what_destroys_asks_first_unless_its_row_says_never(
    chat, tool, given, action, params
):
    chat.client.roles = OWNS
    result = await chat.call(tool, user=ADMIN, role="admin", **given)
    asks = tool in ASK_FIRST or tool == "recall_message"
    assert (result.metadata.get("refusal") == "needs_approval") is asks
    assert len(chat.client.acts) == (not asks)
    chat.rows = rows(requires_approval="never")
    assert (await chat.call(tool, **given)).success


@pytest.mark.parametrize("tool", [one.spec.name for one in acts.TOOLS])
def test_every_act_is_off_and_deferred_at_first(tool):
    (spec,) = (one.spec for one in acts.TOOLS if one.spec.name == tool)
    first = spec.metadata["default_config"]
    assert (first.enabled, first.visibility) == (False, "deferred")
    limits = {"mute_member": 20, "kick_member": 5}
    assert first.calls_per_day_chat == limits.get(tool)


@pytest.mark.parametrize("own", ["member", "admin", "owner", ""])
async def test_an_act_is_offered_where_the_own_role_allows_it(chat, own):
    context = chat.context(ASKER, "member")
    context.own_role = own
    listed = await act_registry(chat.record, rows()).list_tools(context.availability())
    offered = {spec.name for spec in listed}
    admins = {
        "mute_member",
        "unmute_member",
        "mute_group",
        "kick_member",
        "set_essence",
        "announce",
    }
    assert (admins <= offered) is (own in ("admin", "owner"))
    assert ("set_member_title" in offered) is (own == "owner")
    assert ("recall_message" in offered) is bool(own)


@pytest.mark.parametrize(
    ("user", "role", "target", "words"),
    [
        (ADMIN, "admin", OWNER, "群主"),
        (BOT_OWNER, "member", OWNER, "群主"),
        (ADMIN, "admin", BOT, "机器人自己"),
        (ADMIN, "admin", BOT_OWNER, "机器人的主人"),
        (BOT_OWNER, "member", BOT_OWNER, "机器人的主人"),
        (ADMIN, "admin", ADMIN_2, "管理员"),
        (ASKER, "member", STRANGER, "不是本群成员"),
        (ADMIN, "admin", "0", "一个人"),
        (ADMIN, "admin", "all", "一个人"),
        (ADMIN, "admin", f"{MEMBER} all", "一个人"),
        (ADMIN, "admin", f"{MEMBER},{ASKER}", "一个人"),
        (ADMIN, "admin", f"0{MEMBER}", "一个人"),
        (ADMIN, "admin", "２０００２", "一个人"),
        (ADMIN, "admin", f"{MEMBER}\n", "一个人"),
        (ADMIN, "admin", "-1", "一个人"),
        (ADMIN, "admin", "[CQ:at,qq=all]", "一个人"),
    ],
)
@pytest.mark.parametrize("approved", [False, True])
async def test_nobody_acts_against_some(chat, user, role, target, words, approved):
    result = await chat.call("kick_member", user=user, role=role, approved=approved, user_id=target)
    assert words in result.error_message
    assert result.metadata["refusal"] == "not_permitted"
    assert chat.client.acts == []


@pytest.mark.parametrize(
    ("user", "role", "target", "may"),
    [
        (OWNER, "owner", ADMIN, True),
        (BOT_OWNER, "member", ADMIN, True),
        (ADMIN, "admin", ADMIN_2, False),
        (ASKER, "member", ADMIN, False),
        (ASKER, "", ADMIN, False),
        (ADMIN, "admin", MEMBER, True),
        (ASKER, "member", MEMBER, True),
    ],
)
async def test_an_account_that_owns_the_group_acts_for_who_ranks_above(
    chat, user, role, target, may
):
    chat.client.roles = OWNS
    result = await chat.call("kick_member", user=user, role=role, approved=True, user_id=target)
    assert result.success is may
    assert len(chat.client.acts) == may


@pytest.mark.parametrize(
    ("tool", "given", "asks"),
    [
        ("unmute_member", {"user_id": MEMBER}, True),
        ("set_member_card", {"user_id": MEMBER, "card": "x"}, True),
        ("set_member_card", {"user_id": ASKER, "card": "x"}, False),
        ("set_essence", {"message_id": "72"}, True),
        ("recall_message", {"message_id": "73"}, False),
    ],
)
async def test_a_member_has_nothing_done_for_him_that_takes_more(chat, tool, given, asks):
    result = await chat.call(tool, **given)
    assert (result.metadata.get("refusal") == "needs_approval") is asks
    assert len(chat.client.acts) == (not asks)


async def test_a_question_rests_on_the_message_that_is_quoted_or_asked_by(chat):
    result = await chat.call("mute_member", user_id=MEMBER, minutes=1)
    basis = result.metadata["basis"]
    assert (basis.message_id, basis.said_by, basis.words) == ("71", ASKER, "please")
    await Message.objects.filter(pk=chat.asked.pk).aupdate(quoted_id="72")
    basis = (await chat.call("mute_member", user_id=MEMBER, minutes=1)).metadata["basis"]
    assert (basis.message_id, basis.said_by, basis.words) == ("72", MEMBER, "spam")
    basis = (await chat.call("recall_message", message_id="72")).metadata["basis"]
    assert basis.words == "spam"


async def test_words_of_who_has_left_are_taken_back_too(chat):
    chat.client.left = MEMBER
    assert (await chat.call("recall_message", approved=True, message_id="72")).success
    assert not (await chat.call("mute_member", approved=True, user_id=MEMBER, minutes=1)).success
    chat.client.roles = {BOT: "member"}
    assert not (await chat.call("recall_message", approved=True, message_id="72")).success


@pytest.mark.parametrize(
    ("outcome", "state", "words"),
    [
        (ActionOutcome(is_unknown=True), "unknown", "请勿重复"),
        (ActionOutcome(is_unsupported=True, retcode=1404), "failed", "不支持"),
        (ActionOutcome(retcode=1200, words="no rights"), "failed", "no rights"),
        (ActionOutcome(retcode=102), "failed", "retcode 102"),
    ],
)
async def test_what_a_client_makes_of_an_act_is_on_record(chat, outcome, state, words):
    chat.client.answers["set_group_ban"] = outcome
    result = await chat.call("mute_member", approved=True, user_id=MEMBER, minutes=1)
    assert words in result.error_message
    assert call_outcome(1, result, "", 0).state == state


@pytest.mark.parametrize("message_id", ["74", "", "-1", "72 73", "all"])
async def test_a_message_has_to_be_of_this_chat(chat, message_id):
    for tool in ("recall_message", "set_essence"):
        result = await chat.call(tool, user=BOT_OWNER, approved=True, message_id=message_id)
        assert not result.success
    assert chat.client.acts == []


async def test_in_private_the_bot_takes_back_its_own_words_alone(record):
    chat = await sync_to_async(Chat)(record, ScriptedClient(), PRIVATE)
    assert (await chat.call("recall_message", message_id="73")).success
    assert "私聊" in (await chat.call("recall_message", message_id="72")).error_message
    assert len(chat.client.acts) == 1


async def test_so_many_calls_a_day_begin_in_a_chat_and_no_more(chat):
    chat.rows = rows(calls_per_day_chat=2)
    for count in (1, 2, 2):
        result = await chat.call("kick_member", approved=True, user_id=MEMBER)
        assert len(chat.client.acts) == count
    assert "2 次" in result.error_message
    assert result.metadata["refusal"] == "rate_limited"
    asked = await chat.call("kick_member", user_id=MEMBER)
    assert asked.metadata["refusal"] == "rate_limited"  # nobody is asked in vain
    assert (await chat.call("mute_member", approved=True, user_id=MEMBER, minutes=1)).success


async def test_what_is_refused_and_what_was_yesterday_does_not_count(chat):
    chat.rows = rows(calls_per_day_chat=1)
    assert not (await chat.call("kick_member", approved=True, user_id=OWNER)).success
    assert (await chat.call("kick_member", approved=True, user_id=MEMBER)).success
    assert not (await chat.call("kick_member", approved=True, user_id=MEMBER)).success
    day = timedelta(days=1)
    await ToolCall.objects.all().aupdate(created_at=timezone.now() - day)
    assert (await chat.call("kick_member", approved=True, user_id=MEMBER)).success


@pytest.mark.parametrize(
    ("tool", "given", "noted", "action", "params"),
    [
        (
            "mute_member",
            {"user_id": MEMBER, "minutes": 1},
            None,
            "set_group_ban",
            {**ON_MEMBER, "duration": 0},
        ),
        ("mute_group", {"on": True}, None, "set_group_whole_ban", {**HERE, "enable": False}),
        (
            "set_essence",
            {"message_id": "72"},
            None,
            "delete_essence_msg",
            {**HERE, "message_id": "72"},
        ),
        (
            "set_member_card",
            {"user_id": MEMBER, "card": "x"},
            {"before": "old"},
            "set_group_card",
            {**ON_MEMBER, "card": "old"},
        ),
    ],
)
async def test_acts_are_taken_back(chat, tool, given, noted, action, params):
    call = RecordedCall(tool, given, structured_content=noted)
    await act_registry(chat.record, rows()).undo(call, chat.context(ADMIN, "admin"))
    assert chat.client.acts == [(action, params)]


async def test_the_card_of_before_is_noted(chat):
    result = await chat.call("set_member_card", user=ADMIN, role="admin", user_id=MEMBER, card="x")
    assert result.structured_content == {"before": "before"}


@pytest.mark.parametrize("target", [ASKER, BOT_OWNER])
async def test_who_only_claims_to_be_somebody_has_not_his_rights(chat, target):
    """Where ids and roles are made up by whoever writes."""
    chat.believes = False
    given = {"user_id": target, "card": "x"}
    assert not (await chat.call("set_member_card", user=target, role="owner", **given)).success
    assert chat.client.acts == []


@pytest.mark.parametrize(("tool", "given", "action", "params"), SENT)
async def test_no_group_is_acted_in_from_a_private_chat(record, tool, given, action, params):
    """Also where its row lets it be called there: the number of a person may be a group's."""
    chat = await sync_to_async(Chat)(record, ScriptedClient(OWNS), PRIVATE)
    chat.rows = rows(scope="all")
    assert not (await chat.call(tool, user=BOT_OWNER, approved=True, **given)).success
    assert chat.client.acts == []
