"""What clients of official bots call an account, and whether all that arrives from groups is for it."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


class AddColumn(migrations.AddField):
    """For a table that has columns of before that no model has: SQLite's own way would make it anew,
    without them. The default of the field has to be the database's."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            field = model._meta.get_field(self.name)
            BaseDatabaseSchemaEditor.add_field(schema_editor, model, field)


class Migration(migrations.Migration):

    dependencies = [
        ('onebot', '0008_answers_in_manners'),
    ]

    operations = [
        AddColumn(
            model_name='bot',
            name='all_for_me',
            field=models.BooleanField(db_default=False, default=False, help_text="Every message that arrives from a group counts as a mention of the bot. For official bots, whose bridges take mentions off. Anybody's words in a group are answered then.", verbose_name='every group message is for it'),
        ),
        AddColumn(
            model_name='bot',
            name='second_name',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='What the client calls the account when it dials in, if that is not its id.', max_length=64, verbose_name='second name'),
        ),
    ]
