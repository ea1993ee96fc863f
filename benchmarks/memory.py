"""What recalling notes costs a message, measured by itself in a child process with Django set up.

``COUNT`` prints it as JSON, with COUNT notes on an SQLite database of the installation: in one chat
that has all of them, in one chat of a hundred, and in one chat that has them all in
nearly the same words, which is the worst a search can meet.
"""

import json
import random
import sys
import time
from collections.abc import Callable

from django.core.management import call_command
from django.db import transaction

from agent.domain.notes import NoteViewer
from agent.memory.recall import RecallRequest, build_memory_block
from agent.models import Note
from tools.text.search_terms import SEARCH_LIMIT

MESSAGES = 50
BUDGET = 1_500
SIGNS = "今天气我们喜欢苹果香蕉北京上海电影音乐编程游戏学校老师同跑步泳咖啡火锅花生过敏日五月周末爬山猫粮狗脑手机键盘鼠标工作会议项目计划旅行票酒店"
HERE = NoteViewer("onebot", "1", "group:0", "0")


def main() -> None:
    count, chance = int(sys.argv[1]), random.Random(1)
    call_command("migrate", verbosity=0)
    figures = {"none_ms": cost(BUDGET, lambda: words(chance, 60))}
    for name, chats in (("recall", 1), ("shared", 100)):
        seed(count, chats, lambda: words(chance, 60))
        figures[f"{name}_ms"] = cost(BUDGET, lambda: words(chance, 60))
        figures["off_ms"] = cost(0, lambda: words(chance, 60))
    same = words(chance, SEARCH_LIMIT + 1)
    seed(count, 1, lambda: same)
    figures["alike_ms"] = cost(BUDGET, lambda: same)
    print(json.dumps(figures))


def words(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(SIGNS, k=length))


def seed(count: int, chats: int, text: Callable[[], str]) -> None:
    """Have nothing but ``count`` notes, of 200 people in so many chats."""
    with transaction.atomic():
        Note.objects.all().delete()
        for number in range(count):
            person = str(number % 200)
            note = Note(
                account="1",
                owner_id=person,
                said_by=person,
                chat=f"group:{number % chats}",
                source=Note.Source.USER,
            )
            note.text = f"{text()}{number}"
            note.save()


def cost(budget: int, text: Callable[[], str]) -> float:
    """Milliseconds of CPU a message, the statements compiled before."""
    messages = [RecallRequest(HERE, text(), budget) for _ in range(MESSAGES)]
    build_memory_block(messages[0])
    began = time.thread_time()
    for message in messages:
        with transaction.atomic():
            build_memory_block(message)
    return 1000 * (time.thread_time() - began) / MESSAGES
