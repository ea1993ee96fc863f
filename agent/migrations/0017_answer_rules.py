"""Who is answered and how often stands in manners alone. The limits of chats are copied into their rows
of manners; their columns stay, with what they hold, and nothing reads them any more."""

import re
from typing import Any

import django.core.validators
from django.db import migrations, models
from django.db.models import Q

LIMITS = ("person_per_minute", "person_per_day", "chat_per_minute", "chat_per_day")
SEPARATORS = re.compile(r"[\s,;，；、]+")


def parse_ids(text: str) -> list[str]:
    return list(dict.fromkeys(part for part in SEPARATORS.split(text) if part))


def list_chats(row: Any) -> list[str]:
    return [chat.removeprefix("onebot:") for chat in parse_ids(row.chats.replace("：", ":"))]


def find_row(manners: Any, account: str, kind: str, chat: str) -> Any:
    """The row that counts first of those for this chat alone; None without one."""
    rows = manners.objects.filter(enabled=True, account=account, chat_kind__in=("", kind))
    return next((row for row in rows.order_by("-chat_kind", "pk") if list_chats(row) == [chat]), None)


def make_row(manners: Any, wanted: str, **fields: Any) -> None:
    """A row called ``wanted``, with a number where another has that name."""
    taken = set(manners.objects.filter(name__startswith=wanted[:90]).values_list("name", flat=True))
    names = [wanted[:90], *(f"{wanted[:90]} {number}" for number in range(2, len(taken) + 3))]
    manners.objects.create(name=next(name for name in names if name not in taken), **fields)


def copy_limits(apps: Any, editor: Any) -> None:
    """Manners are of OneBot's chats; in a terminal there is nobody but the owner."""
    sessions, manners = apps.get_model("agent.ChatSession"), apps.get_model("agent.Manners")
    is_limited = Q(*((f"{name}__isnull", False) for name in LIMITS), _connector=Q.OR)
    for session in sessions.objects.filter(is_limited, platform="onebot").order_by("pk"):
        key, account = f"{session.kind}:{session.peer_id}", session.account
        limits = {name: getattr(session, name) for name in LIMITS}
        if row := find_row(manners, account, session.kind, key):
            manners.objects.filter(pk=row.pk).update(**limits)
        elif not SEPARATORS.search(key):  # no client has such an id
            place = {"account": account, "chat_kind": session.kind, "chats": key}
            make_row(manners, f"{key} ({account})", **place, **limits)


class Migration(migrations.Migration):
    dependencies = [("agent", "0016_one_sum_of_tokens")]

    operations = [
        migrations.AddField(
            model_name='manners',
            name='answered',
            field=models.CharField(blank=True, choices=[('everybody', 'everybody'), ('friends', 'friends and those who are listed'), ('listed', 'only those who are listed'), ('nobody', 'nobody')], db_default='', default='', help_text='In groups “friends” means those who are listed. Owners are answered all the same, but in a group where nobody is.', max_length=16, verbose_name='who is answered'),
        ),
        migrations.AddField(
            model_name='manners',
            name='chat_per_day',
            field=models.PositiveIntegerField(blank=True, help_text='0: no limit. Empty: CHAT_ANSWERS_PER_DAY.', null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000000)], verbose_name='answers in one chat a day'),
        ),
        migrations.AddField(
            model_name='manners',
            name='chat_per_minute',
            field=models.PositiveIntegerField(blank=True, help_text='0: no limit. Empty: CHAT_ANSWERS_PER_MINUTE.', null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000000)], verbose_name='answers in one chat a minute'),
        ),
        migrations.AddField(
            model_name='manners',
            name='listed_people',
            field=models.TextField(blank=True, db_default='', default='', help_text='Ids of people, one a line: answered whoever else is. Limits count for them.', verbose_name='listed people'),
        ),
        migrations.AddField(
            model_name='manners',
            name='person_per_day',
            field=models.PositiveIntegerField(blank=True, help_text='0: no limit. Empty: PERSON_ANSWERS_PER_DAY. The day begins at midnight.', null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000000)], verbose_name='answers to one person a day'),
        ),
        migrations.AddField(
            model_name='manners',
            name='person_per_minute',
            field=models.PositiveIntegerField(blank=True, help_text='0: no limit. Empty: PERSON_ANSWERS_PER_MINUTE. Owners are exempt.', null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000000)], verbose_name='answers to one person a minute'),
        ),
        migrations.RunPython(copy_limits, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("chatsession", name) for name in LIMITS]
        ),
    ]
