"""The rows of the day that ``python -m benchmarks.same_day`` plays: accounts, manners, personas, an
endpoint, budgets, tools.

It is run as a program in the folder of the commit that is to play, and makes the tables as they
were at :data:`STATE` first: so the rows mean the same to each commit, and those that came later
bring them to their own tables, as they do for everybody. Given on stdin: the addresses of the
model and of the tool, as JSON.
"""

import json
import sys

import django

django.setup()

from django.db import connection  # noqa: E402
from django.db.migrations.executor import MigrationExecutor  # noqa: E402

#: The newest migrations of the release whose tables the rows are written for.
STATE = [
    ("agent", "0016_one_sum_of_tokens"),
    ("frostproject", "0004_table_names"),
    ("onebot", "0007_introductions"),
    ("tools", "0006_other_chats"),
]
OWNER, DENIED, LISTED = "20001", "21003", "21001"
#: What each chat has of its own, by its number (see :mod:`benchmarks.day_story`).
GROUP_MANNERS = {
    1: {"wake_names": "小霜\nfrosty", "wake_prefixes": "!", "wake_mention": False},
    2: {"wake_always": True},
    3: {"merge_seconds": 0.4},
    4: {"ambient_messages": 10},
    5: {"quote": True, "mention": True},
    6: {"part_chars": 100, "markdown": "plain"},
    7: {"forward_above": 200, "command_prefix": "#"},
    8: {"says_beside_calls": True, "reaction": "424"},
    9: {"denied_people": DENIED},
    10: {"silenced": True},
    11: {"quiet_hours": "00:00-12:00\n12:00-24:00"},
    14: {"wake_pattern": "天[气氣]"},
    16: {"markdown": "as_is", "mention": True, "ambient_messages": 3, "ambient_chars": 200},
    17: {"allowed_people": LISTED},
    19: {"groups": False},
}
PRIVATE_MANNERS = {
    1: {"private": "off"},
    2: {"private": "friends"},
    3: {"typing": True, "merge_seconds": 0.3},
    5: {"command_prefix": "-", "part_chars": 120},
}


def write(models, given):
    """All rows, with the models of :data:`STATE`."""
    cheap = models("agent", "ModelEndpoint").objects.create(
        name="cheap", base_url=given["model"], model="scripted-cheap", position=200
    )
    _write_manners(models("agent", "Manners"), cheap)
    _write_personas(models)
    _write_budgets(models("agent", "Budget"), cheap)
    _write_tools(models, given["tool"])
    _write_bots(models("onebot", "Bot"))


def _write_manners(manners, cheap):
    for number, said in GROUP_MANNERS.items():
        manners.objects.create(name=f"g{number}", chats=f"group:{30000 + number}", **said)
    for number, said in PRIVATE_MANNERS.items():
        manners.objects.create(name=f"p{number}", chats=f"private:{41000 + number}", **said)
    manners.objects.create(name="second endpoint", chats="group:30018", endpoint=cheap)
    manners.objects.create(name="account", account="10003", chat_kind="group", quote=True)


def _write_personas(models):
    persona, choice = models("agent", "Persona"), models("agent", "PersonaChoice")
    cat = persona.objects.create(
        name="cat",
        prompt="你是一只猫，在{chat_kind}里，叫{bot_name}。{tool:get_weather?}",
        examples=[["你好", "喵"]],
        context_messages=8,
        mention=False,
    )
    pirate = persona.objects.create(
        name="pirate", prompt="You are a pirate.", tools="get_weather send_message", model_calls=3
    )
    persona.objects.create(
        name="poet", kind="agent", description="写诗", prompt="你是诗人。", as_tool=True
    )
    choice.objects.create(persona=cat, chat_kind="group", peer_id="30012")
    choice.objects.create(persona=pirate, user_id="41004")


def _write_budgets(budget, cheap):
    common = {"unit": "tokens", "period": "day"}
    for name, chat, limit, action, other in (
        ("sentence", "group:30013", "15000", "sentence", None),
        ("cheaper", "group:30015", "15000", "cheaper", cheap),
        ("owners", "private:41006", "15000", "owners", None),
    ):
        budget.objects.create(
            name=name, kind="chat", subject=f"onebot:10001:{chat}", limit=limit,
            at_limit=action, cheaper=other, **common,
        )  # fmt: skip


def _write_tools(models, url):
    models("tools", "HttpTool").objects.create(
        name="shop_price",
        description="查询一种商品的价格",
        url=url,
        query={"item": "{item}"},
        parameters_schema={
            "type": "object",
            "properties": {"item": {"type": "string"}},
            "required": ["item"],
        },
    )
    models("tools", "ToolConfig").objects.create(
        name="get_game_version",
        provider_name="samples",
        requires_approval="always",
        mock_enabled=True,
        mock_value="{game} 的最新版本是 V9",
    )


def _write_bots(bot):
    bot.objects.create(self_id="10001", owners=OWNER)
    bot.objects.create(self_id="10002", owners=OWNER, person_per_minute=3, chat_per_minute=5)
    bot.objects.create(self_id="10003", owners=OWNER, person_per_day=5, chat_per_day=7)
    bot.objects.create(
        self_id="10004", owners=OWNER, timing_gate=True, answered="listed", listed_people=LISTED,
        listed_groups="30018", blocked_people=DENIED,
    )  # fmt: skip


def main():
    executor = MigrationExecutor(connection)
    nodes = executor.loader.graph.leaf_nodes()
    state = executor.migrate(STATE + [node for node in nodes if node[0] not in dict(STATE)])
    write(state.apps.get_model, json.load(sys.stdin))


main()
