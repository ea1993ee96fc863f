"""Who may give commands against members, and acts of operators against them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0027_requests'),
    ]

    operations = [
        migrations.AddField(
            model_name='manners',
            name='member_commands',
            field=models.CharField(blank=True, choices=[('off', 'off'), ('admins', "owners, and the group's owner and administrators")], db_default='', default='', help_text='Who may give /mute, /unmute and /kick in groups. Empty: nobody.', max_length=8, verbose_name='commands against members'),
        ),
    ]
