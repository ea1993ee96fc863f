"""Rules of events count field by field. What rows say, they go on saying: none has left open what
is done, or whom it mentions."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0030_chat_events'),
    ]

    operations = [
        migrations.AlterField(
            model_name='eventrule',
            name='action',
            field=models.CharField(blank=True, choices=[('nothing', 'nothing'), ('say', 'say the text'), ('picture', 'send a picture'), ('sticker', 'send a sticker'), ('model', 'have the model answer'), ('tool', 'call a tool')], default='nothing', help_text='Not said here: this, and all that is empty, is as the next broader row for the kind says. Said here: only the mention is, and what cannot be missing, from a row that does the same. Keywords take nothing from other rows.', max_length=8, verbose_name='what is done'),
        ),
        migrations.AlterField(
            model_name='eventrule',
            name='mention',
            field=models.BooleanField(blank=True, help_text='In groups: at whom the event is about.', null=True, verbose_name='mention'),
        ),
    ]
