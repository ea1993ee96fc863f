"""Who may give commands against members, and acts of operators against them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0025_reminders'),
    ]

    operations = [
        migrations.AddField(
            model_name='manners',
            name='member_commands',
            field=models.CharField(blank=True, choices=[('off', 'off'), ('admins', "owners, and the group's owner and administrators")], db_default='', default='', help_text='Who may give /mute, /unmute and /kick in groups. Empty: nobody.', max_length=8, verbose_name='commands against members'),
        ),
        migrations.AlterField(
            model_name='operatoract',
            name='kind',
            field=models.CharField(choices=[('silence', 'silenced the chat'), ('speak', 'let the chat speak'), ('only', 'let only one person be answered'), ('everybody', 'let everybody be answered again'), ('lift', 'lifted the pause'), ('reset', 'reset the context'), ('persona', 'chose a persona'), ('model', 'chose a model'), ('answer', 'answered by hand'), ('take_over', 'took over'), ('hand_back', 'handed back'), ('resend', 'sent again'), ('cancel', 'cancelled the run'), ('stop_call', 'stopped a tool call'), ('ask_again', 'asked again without sending'), ('export', 'exported the chat'), ('erase', 'erased a person'), ('mute', 'muted a member'), ('unmute', 'unmuted a member'), ('mute_group', 'muted or unmuted the group'), ('kick', 'removed a member'), ('recall', 'took a message back')], max_length=16, verbose_name='act'),
        ),
    ]
