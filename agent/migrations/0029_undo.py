"""What is taken back of runs, step by step, and what calls changed in the state of their chats."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0028_member_commands'),
    ]

    operations = [
        migrations.AddField(
            model_name='toolcall',
            name='state_change',
            field=models.JSONField(editable=False, null=True),
        ),
        migrations.AlterField(
            model_name='operatoract',
            name='kind',
            field=models.CharField(choices=[('silence', 'silenced the chat'), ('speak', 'let the chat speak'), ('only', 'let only one person be answered'), ('everybody', 'let everybody be answered again'), ('lift', 'lifted the pause'), ('reset', 'reset the context'), ('persona', 'chose a persona'), ('model', 'chose a model'), ('answer', 'answered by hand'), ('take_over', 'took over'), ('hand_back', 'handed back'), ('resend', 'sent again'), ('cancel', 'cancelled the run'), ('stop_call', 'stopped a tool call'), ('ask_again', 'asked again without sending'), ('export', 'exported the chat'), ('erase', 'erased a person'), ('undo', 'undid an answer'), ('mute', 'muted a member'), ('unmute', 'unmuted a member'), ('mute_group', 'muted or unmuted the group'), ('kick', 'removed a member'), ('recall', 'took a message back'), ('let_in', 'approved a request'), ('keep_out', 'refused a request')], max_length=16, verbose_name='act'),
        ),
        migrations.CreateModel(
            name='UndoStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('message', 'message'), ('call', 'tool call'), ('state', 'state of the chat')], max_length=8, verbose_name='kind')),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('running', 'running'), ('done', 'undone'), ('failed', 'failed'), ('unknown', 'outcome unknown')], default='waiting', max_length=16, verbose_name='state')),
                ('words', models.TextField(blank=True, default='', verbose_name='words')),
                ('author', models.CharField(blank=True, default='', max_length=200, verbose_name='author')),
                ('command', models.BigIntegerField(editable=False, null=True)),
                ('claimed_by', models.CharField(blank=True, default='', editable=False, max_length=32)),
                ('created_at', models.DateTimeField(verbose_name='recorded at')),
                ('settled_at', models.DateTimeField(null=True, verbose_name='settled at')),
                ('message', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='undo_steps', to='agent.message', verbose_name='message')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='undo_steps', to='agent.run', verbose_name='run')),
                ('tool_call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='undo_steps', to='agent.toolcall', verbose_name='tool call')),
            ],
            options={
                'verbose_name': 'undone step',
                'verbose_name_plural': 'undone steps',
                'ordering': ('id',),
                'indexes': [models.Index(condition=models.Q(('state__in', ('waiting', 'running'))), fields=['id'], name='undo_open'), models.Index(condition=models.Q(('command__isnull', False)), fields=['command'], name='undo_command')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('message__isnull', False)), fields=('message',), name='undo_message_once'), models.UniqueConstraint(condition=models.Q(('tool_call__isnull', False)), fields=('tool_call', 'kind'), name='undo_call_once')],
            },
        ),
    ]
