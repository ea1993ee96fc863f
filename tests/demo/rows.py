"""Rows of the story: programs that :func:`tests.security.people.run` runs on its database."""

#: What an operator has set up before.
SETTINGS = """
import json, sys, django
django.setup()
from agent.models import Budget, ModelEndpoint, Persona
from tools.models import HttpTool
given = json.load(sys.stdin)
ModelEndpoint.objects.create(
    name="deepseek-flash", preset="deepseek", base_url=given["model"], model="deepseek-flash",
    can_see=True, price_input="1", price_output="2", currency="CNY",
)
Budget.objects.create(name=given["budget"], kind="total", period="month", limit="30", unit="CNY")
Persona.objects.filter(is_default=True).update(
    name=given["persona"], prompt=given["prompt"], language=given["language"]
)
text = {"type": "string"}
HttpTool.objects.create(
    name="book_table", description=given["table_tool"], method="POST", body_kind="json",
    url="https://tables.example.com/v1/bookings", body='{"place": "{place}", "people": "{people}"}',
    parameters_schema={"type": "object", "required": ["place", "people"], "properties": {
        "place": text, "people": {"type": "integer"}, "time": text}},
)
"""

#: A month before, in sums alone.
MONTH = """
import random, django
django.setup()
from datetime import timedelta
from django.utils import timezone
from agent.models import ChatSession, ModelEndpoint, SpendSum
from agent.models.activity import ActivitySum, ToolUse
dice, today = random.Random(7), timezone.localdate()
endpoint = ModelEndpoint.objects.get(name="deepseek-flash")
chats = list(ChatSession.objects.filter(account="3287654321").order_by("pk"))
activity, uses, spent = [], [], []
for days in range(1, 30):
    date, tokens_today = today - timedelta(days=days), 0
    day, is_weekend = date.isoformat(), date.weekday() > 4
    for chat in chats:
        scale = (9 if chat.kind == "group" else 0.4) * (1.6 if is_weekend else 1)
        received = int(scale * dice.uniform(8, 16))
        addressed = received // (3 if chat.kind == "group" else 1)
        failed = int(dice.random() < 0.12)
        quick, slow = int(addressed * 0.6), int(addressed * 0.1)
        activity.append(ActivitySum(
            day=day, session=chat, received=received, addressed=addressed,
            answered=addressed - failed, failed=failed, sent=addressed - failed,
            runs=addressed, failed_runs=failed,
            tool_calls=addressed // 3, within_3=quick, within_8=slow,
            within_5=addressed - failed - quick - slow,
        ))
        for tool, share in (("get_weather", 4), ("book_table", 9), ("recall_notes", 6)):
            if calls := addressed // share:
                uses.append(ToolUse(day=day, session=chat, tool=tool, calls=calls, failures=0))
        tokens = addressed * dice.randint(2500, 4200)
        tokens_today += tokens
        spent.append(("chat", f"onebot:{chat.account}:{chat.kind}:{chat.peer_id}", day, tokens))
    spent += [("total", "", day, tokens_today), ("endpoint", str(endpoint.pk), day, tokens_today)]
ActivitySum.objects.bulk_create(activity)
ToolUse.objects.bulk_create(uses)
SpendSum.objects.bulk_create(
    SpendSum(day=day, kind=kind, subject=subject, currency="CNY", calls=tokens // 3000,
        input_tokens=tokens, output_tokens=tokens // 12, cost_nano=tokens * 1170)
    for kind, subject, day, tokens in spent
)
"""

#: An MCP server whose tools nobody has looked at yet, another persona, and a second endpoint.
NEW_SERVER = """
import django
django.setup()
from agent.models import Persona
from tools.models import McpServer, ToolConfig
from tools.registry.catalogue import declaration_fingerprint
McpServer.objects.create(name="Harbour", transport="streamable_http", url="https://harbour.example.com/mcp")
ToolConfig.objects.create(name="tides", provider_name="mcp", description="When the tide comes",
    fingerprint=declaration_fingerprint({"name": "tides"}, "Harbour"), allowed="owners")
Persona.objects.create(name="Skipper", prompt="You are a skipper.")
"""
