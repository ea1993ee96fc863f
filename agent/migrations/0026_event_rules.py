"""Rules of events and keywords, and what the groups may do with them."""

from importlib import import_module

import django.core.validators
from django.db import migrations, models


groups = import_module("agent.migrations.0002_groups")
GRANTED = {"viewer": ("view",), "operator": ("view", "add", "change", "delete")}


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    for group in apps.get_model("auth", "Group").objects.using(alias).filter(name__in=GRANTED):
        group.permissions.add(
            *(groups.permission(apps, alias, verb, "agent", "eventrule") for verb in GRANTED[group.name])
        )


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0025_reminders'),
    ]

    operations = [
        migrations.CreateModel(
            name='EventRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('account', models.CharField(blank=True, default='', help_text='Empty: every account.', max_length=64, verbose_name='account')),
                ('chat_kind', models.CharField(blank=True, choices=[('group', 'group'), ('private', 'private')], default='', help_text='Empty: groups and private chats.', max_length=16, verbose_name='kind of chat')),
                ('chats', models.TextField(blank=True, default='', help_text='One a line: group:123456 or private:20002. Empty: all chats of the account and kind.', verbose_name='chats')),
                ('name', models.CharField(max_length=100, unique=True, validators=[django.core.validators.RegexValidator('^[^\\x00-\\x1f\\x7f]*\\Z', 'No control characters.')], verbose_name='name')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('kind', models.CharField(choices=[('poke', 'poke'), ('join', 'somebody joined'), ('leave', 'somebody left'), ('recall', 'message taken back'), ('mute', 'mute'), ('admin', 'administrators'), ('title', 'title'), ('card', 'card'), ('upload', 'file'), ('essence', 'essence message'), ('honor', 'honour'), ('reaction', 'reaction'), ('keyword', 'keyword')], help_text='What it is for. A poke is one at the bot by somebody else; who leaves may have been removed; a mute or an administrator may begin or end.', max_length=16, verbose_name='kind')),
                ('action', models.CharField(choices=[('nothing', 'nothing'), ('say', 'say the text'), ('picture', 'send a picture'), ('sticker', 'send a sticker'), ('model', 'have the model answer'), ('tool', 'call a tool')], default='nothing', max_length=8, verbose_name='what is done')),
                ('text', models.TextField(blank=True, default='', help_text='Said as it is, with {name}, {group}, {operator} and {count} filled in; beside a picture too. To a model: what it is to do.', validators=[django.core.validators.MaxLengthValidator(5000)], verbose_name='text')),
                ('file', models.CharField(blank=True, default='', help_text='A file of the media folder, or of the stickers, or an address (https://…).', max_length=1000, verbose_name='picture')),
                ('mention', models.BooleanField(default=False, help_text='In groups: at whom the event is about.', verbose_name='mention')),
                ('match', models.CharField(choices=[('word', 'the whole message is one of the words'), ('prefix', 'it begins with one of them'), ('pattern', 'one of the regular expressions is found in it')], default='word', max_length=8, verbose_name='found as')),
                ('words', models.TextField(blank=True, default='', help_text='One a line. Regular expressions are of RE2.', verbose_name='keywords')),
                ('tool', models.CharField(blank=True, default='', help_text='Called for whoever caused it, by the rules of the tool, without a model.', max_length=128, verbose_name='tool')),
                ('arguments', models.JSONField(blank=True, default=dict, help_text='A JSON object, always the same.', verbose_name='arguments')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='made')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'event rule',
                'verbose_name_plural': 'event rules',
                'ordering': ('kind', 'account', 'chat_kind', 'name'),
            },
        ),
        migrations.AlterField(
            model_name='message',
            name='reason',
            field=models.CharField(blank=True, choices=[('private', 'private message'), ('mention', 'the bot was mentioned'), ('wake_word', 'a wake word was said'), ('quote', "the bot's own message was quoted"), ('prefix', 'it begins with a wake prefix'), ('pattern', 'a wake pattern was found in it'), ('chance', 'chosen by chance'), ('always', 'every message is answered here'), ('follow_up', 'it follows a message of the same person'), ('command', 'a command'), ('decision', 'a word on a call that waits for approval'), ('later_result', 'the later result of a tool call'), ('reminder', 'a reminder'), ('event', 'something happened in the chat that a rule is for'), ('keyword', 'it says a keyword'), ('not_addressed', 'not addressed to the bot'), ('groups_off', 'answers in groups are switched off'), ('own_message', "said by the bot's own account"), ('other_bot', 'said by another bot connected here'), ('system_notice', 'a system notice of the group'), ('empty', 'an empty message'), ('too_old', 'too old when it arrived'), ('blocked', 'this person or group is never answered'), ('not_listed', 'not among those who are answered'), ('person_limit', 'this person was answered as often as is allowed'), ('chat_limit', 'this chat was answered as often as is allowed'), ('token_limit', 'the tokens of the day are used up'), ('budget', 'a budget did not allow it'), ('loop', 'too many exchanges in a row, as between two bots'), ('silenced', 'this chat is silenced'), ('only_one', 'only one person is answered here for now'), ('quiet_hours', 'said in quiet hours'), ('private_off', 'private messages are not answered'), ('not_friend', 'only private messages of friends are answered'), ('paused', 'the bot may not speak in this chat'), ('taken_over', 'an operator answers here'), ('recalled', 'taken back before it was answered'), ('stopped', 'the answer was stopped'), ('merged', 'answered together with a later message'), ('owner_note', 'a note to the owner'), ('queue_full', 'too many messages were waiting in this chat')], default='', max_length=32, verbose_name='reason'),
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
