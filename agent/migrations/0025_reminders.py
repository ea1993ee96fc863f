"""Reminders, what the groups may do with them, and the time zone of manners."""

from importlib import import_module

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


groups = import_module("agent.migrations.0002_groups")
GRANTED = {
    "viewer": ("view",),
    "operator": ("view", "add", "change", "delete"),
    "chat_owner": ("view", "add", "change"),
}


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    for group in apps.get_model("auth", "Group").objects.using(alias).filter(name__in=GRANTED):
        group.permissions.add(
            *(groups.permission(apps, alias, verb, "agent", "reminder") for verb in GRANTED[group.name])
        )


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0024_alert_routes'),
    ]

    operations = [
        migrations.AddField(
            model_name='manners',
            name='zone',
            field=models.CharField(blank=True, db_default='', default='', help_text="The time zone of quiet hours and reminders, such as Asia/Shanghai.", max_length=64, verbose_name='zone of the chat'),
        ),
        migrations.AlterField(
            model_name='message',
            name='reason',
            field=models.CharField(blank=True, choices=[('private', 'private message'), ('mention', 'the bot was mentioned'), ('wake_word', 'a wake word was said'), ('quote', "the bot's own message was quoted"), ('prefix', 'it begins with a wake prefix'), ('pattern', 'a wake pattern was found in it'), ('chance', 'chosen by chance'), ('always', 'every message is answered here'), ('follow_up', 'it follows a message of the same person'), ('command', 'a command'), ('decision', 'a word on a call that waits for approval'), ('later_result', 'the later result of a tool call'), ('reminder', 'a reminder'), ('not_addressed', 'not addressed to the bot'), ('groups_off', 'answers in groups are switched off'), ('own_message', "said by the bot's own account"), ('other_bot', 'said by another bot connected here'), ('system_notice', 'a system notice of the group'), ('empty', 'an empty message'), ('too_old', 'too old when it arrived'), ('blocked', 'this person or group is never answered'), ('not_listed', 'not among those who are answered'), ('person_limit', 'this person was answered as often as is allowed'), ('chat_limit', 'this chat was answered as often as is allowed'), ('token_limit', 'the tokens of the day are used up'), ('budget', 'a budget did not allow it'), ('loop', 'too many exchanges in a row, as between two bots'), ('silenced', 'this chat is silenced'), ('only_one', 'only one person is answered here for now'), ('quiet_hours', 'said in quiet hours'), ('private_off', 'private messages are not answered'), ('not_friend', 'only private messages of friends are answered'), ('paused', 'the bot may not speak in this chat'), ('taken_over', 'an operator answers here'), ('recalled', 'taken back before it was answered'), ('stopped', 'the answer was stopped'), ('merged', 'answered together with a later message'), ('owner_note', 'a note to the owner'), ('queue_full', 'too many messages were waiting in this chat')], default='', max_length=32, verbose_name='reason'),
        ),
        migrations.CreateModel(
            name='Reminder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField(max_length=5000, verbose_name='text')),
                ('due_at', models.DateTimeField(verbose_name='due')),
                ('repeat', models.CharField(blank=True, default='', help_text='A rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO. Empty: once.', max_length=500, verbose_name='repeat')),
                ('kind', models.CharField(choices=[('text', 'fixed text'), ('task', 'task for the model')], default='text', help_text='A text is said as it is; a task is given to the model.', max_length=8, verbose_name='kind')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('paused', 'paused'), ('done', 'done'), ('cancelled', 'cancelled'), ('missed', 'missed'), ('failed', 'failed')], default='waiting', max_length=16, verbose_name='state')),
                ('late', models.CharField(choices=[('tell', 'told as late'), ('drop', 'dropped')], default='tell', help_text='Where the account was away, or the hours were quiet.', max_length=8, verbose_name='when it is late')),
                ('set_by', models.CharField(blank=True, default='', help_text="A person's id.", max_length=64, verbose_name='set by')),
                ('mention', models.TextField(blank=True, default='', help_text='Ids of people, one a line; “all” for everybody in the group.', verbose_name='mentions')),
                ('outcome', models.TextField(blank=True, default='', verbose_name='outcome')),
                ('language', models.CharField(blank=True, default='', editable=False, max_length=16)),
                ('starts_at', models.DateTimeField(editable=False, null=True)),
                ('next_at', models.DateTimeField(editable=False, null=True)),
                ('is_extra', models.BooleanField(default=False, editable=False)),
                ('fired', models.BigIntegerField(editable=False, null=True)),
                ('last_message', models.BigIntegerField(editable=False, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='made')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reminders', to='agent.chatsession', verbose_name='chat session')),
            ],
            options={
                'verbose_name': 'reminder',
                'verbose_name_plural': 'reminders',
                'ordering': ('-id',),
                'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='reminder_next'), models.Index(fields=['set_by', 'state'], name='reminder_person'), models.Index(condition=models.Q(('fired__isnull', False)), fields=['fired'], name='reminder_fired')],
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
