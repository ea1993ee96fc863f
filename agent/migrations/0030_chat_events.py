"""What happened in chats besides messages, as lines of their pages."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0029_undo'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChatEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=16)),
                ('kind', models.CharField(choices=[('poke', 'poke'), ('join', 'somebody joined'), ('leave', 'somebody left'), ('recall', 'message taken back'), ('mute', 'mute'), ('admin', 'administrators'), ('title', 'title'), ('card', 'card'), ('upload', 'file'), ('essence', 'essence message'), ('honor', 'honour'), ('reaction', 'reaction'), ('name', 'name of the group'), ('friend', 'new friend'), ('account', 'account')], max_length=16, verbose_name='kind')),
                ('change', models.CharField(blank=True, default='', max_length=16)),
                ('user_id', models.CharField(blank=True, default='', max_length=64)),
                ('target_id', models.CharField(blank=True, default='', max_length=64)),
                ('operator_id', models.CharField(blank=True, default='', max_length=64)),
                ('message_id', models.CharField(blank=True, default='', max_length=128)),
                ('seconds', models.IntegerField(null=True)),
                ('words', models.CharField(blank=True, default='', max_length=200)),
                ('happened_at', models.DateTimeField(null=True)),
                ('at', models.DateTimeField(verbose_name='recorded at')),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='agent.chatsession', verbose_name='chat session')),
            ],
            options={
                'verbose_name': 'event in a chat',
                'verbose_name_plural': 'events in chats',
                'ordering': ('-id',),
                'default_permissions': (),
                'indexes': [models.Index(fields=['session', 'at'], name='event_session')],
                'constraints': [models.UniqueConstraint(fields=('session', 'key'), name='one_line_per_event')],
            },
        ),
    ]
