"""Requests of people to be let in, rules over them, and what the groups may do there."""

from importlib import import_module

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

groups = import_module("agent.migrations.0002_groups")
GRANTED = {
    "viewer": {"joinrequest": ("view",), "requestrule": ("view",)},
    "operator": {
        "joinrequest": ("view", "change"),
        "requestrule": ("view", "add", "change", "delete"),
    },
    "chat_owner": {"joinrequest": ("view", "change")},
}


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    for group in apps.get_model("auth", "Group").objects.using(alias).filter(name__in=GRANTED):
        for model, verbs in GRANTED[group.name].items():
            group.permissions.add(
                *(groups.permission(apps, alias, verb, "agent", model) for verb in verbs)
            )


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0026_event_rules'),
    ]

    operations = [
        migrations.CreateModel(
            name='RequestRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, default='', max_length=100, validators=[django.core.validators.RegexValidator('^[^\\x00-\\x1f\\x7f]*\\Z', 'No control characters.')], verbose_name='name')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('position', models.PositiveIntegerField(default=100, help_text='The first rule that fits decides, the lowest position first; before all others, rules that refuse listed people.', validators=[django.core.validators.MaxValueValidator(1000000)], verbose_name='position')),
                ('kind', models.CharField(blank=True, choices=[('friend', 'friend request'), ('join', 'request to join'), ('invite', 'invitation to a group')], default='', help_text='Empty: all three.', max_length=8, verbose_name='kind')),
                ('words', models.TextField(blank=True, default='', help_text="One a line: the request fits if what its sender wrote, or answered to the group's question, holds one of them. Empty: whatever was written.", verbose_name='words of the request')),
                ('people', models.TextField(blank=True, default='', help_text='Ids of who asks or invites, one a line. Empty: everybody.', verbose_name='people')),
                ('groups', models.TextField(blank=True, default='', help_text='Ids of groups, one a line. Empty: all.', verbose_name='groups to join')),
                ('least_level', models.PositiveIntegerField(blank=True, help_text='Where the client does not tell the level, the request waits.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='least QQ level')),
                ('per_day', models.PositiveIntegerField(blank=True, help_text='Further requests wait. Empty: no limit.', null=True, validators=[django.core.validators.MaxValueValidator(1000000)], verbose_name='decisions a day')),
                ('action', models.CharField(choices=[('approve', 'approve it'), ('refuse', 'refuse it'), ('wait', 'let it wait for somebody')], default='wait', max_length=8, verbose_name='what becomes of it')),
                ('reason', models.CharField(blank=True, default='', max_length=200, verbose_name='words of the refusal')),
                ('account', models.CharField(blank=True, default='', help_text='Empty: every account.', max_length=64, verbose_name='account')),
                ('chat_kind', models.CharField(blank=True, choices=[('group', 'group'), ('private', 'private')], default='', help_text='Empty: groups and private chats.', max_length=16, verbose_name='kind of chat')),
                ('chats', models.TextField(blank=True, default='', help_text='One a line: group:123456 or private:20002. Empty: all chats of the account and kind.', verbose_name='chats')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'request rule',
                'verbose_name_plural': 'request rules',
                'ordering': ('position', 'id'),
            },
        ),
        migrations.CreateModel(
            name='JoinRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('account', models.CharField(max_length=64, verbose_name='account')),
                ('kind', models.CharField(choices=[('friend', 'friend request'), ('join', 'request to join'), ('invite', 'invitation to a group')], max_length=8, verbose_name='kind')),
                ('user_id', models.CharField(help_text='Who asks, or who invites the account.', max_length=64, verbose_name='person')),
                ('group_id', models.CharField(blank=True, default='', max_length=64, verbose_name='group')),
                ('inviter_id', models.CharField(blank=True, default='', help_text='As the client says.', max_length=64, verbose_name='invited by')),
                ('level', models.PositiveIntegerField(blank=True, null=True, verbose_name='QQ level')),
                ('comment', models.TextField(blank=True, default='', verbose_name='words of the request')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('approved', 'approved'), ('refused', 'refused'), ('expired', 'expired')], default='waiting', max_length=16, verbose_name='state')),
                ('reason', models.TextField(blank=True, default='', help_text="The words of the refusal, or why it is as it is: the client's, where it had.", verbose_name='reason')),
                ('decided_by', models.CharField(blank=True, default='', help_text="An owner's id, the name of an admin account, or a rule.", max_length=200, verbose_name='decided by')),
                ('decided_at', models.DateTimeField(blank=True, null=True, verbose_name='decided')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='asked')),
                ('flag', models.JSONField(editable=False, null=True)),
                ('key', models.CharField(editable=False, max_length=64)),
                ('decision', models.CharField(blank=True, choices=[('approve', 'approve it'), ('refuse', 'refuse it'), ('wait', 'let it wait for somebody')], default='', editable=False, max_length=8)),
                ('claimed_by', models.CharField(blank=True, default='', editable=False, max_length=32)),
                ('told_at', models.DateTimeField(editable=False, null=True)),
                ('rule', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='requests', to='agent.requestrule', verbose_name='rule')),
            ],
            options={
                'verbose_name': 'request to be let in',
                'verbose_name_plural': 'requests to be let in',
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['state', 'account'], name='request_state'), models.Index(fields=['key'], name='request_key'), models.Index(fields=['rule', 'decided_at'], name='request_rule')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'waiting')), fields=('key',), name='one_waiting_request')],
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
