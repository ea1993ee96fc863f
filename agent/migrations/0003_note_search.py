"""Full-text search over the notes.

On SQLite an FTS5 table without a text of its own, kept in step by triggers; on
PostgreSQL an index over the same words. Both look in ``agent_note.words``, whose terms are made
by ``agent.memory.terms``, so that neither database has to know how Chinese is cut.

A later migration that changes the table ``agent_note`` makes Django copy it on SQLite, which
drops triggers: it has to run ``create`` of this one again.
"""

from django.db import migrations

SQLITE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS agent_note_search USING fts5("
    "words, content='agent_note', content_rowid='id', tokenize='unicode61 remove_diacritics 0')",
    "CREATE TRIGGER IF NOT EXISTS agent_note_search_insert AFTER INSERT ON agent_note BEGIN"
    " INSERT INTO agent_note_search (rowid, words) VALUES (new.id, new.words); END",
    "CREATE TRIGGER IF NOT EXISTS agent_note_search_delete AFTER DELETE ON agent_note BEGIN"
    " INSERT INTO agent_note_search (agent_note_search, rowid, words) VALUES ('delete', old.id, old.words); END",
    "CREATE TRIGGER IF NOT EXISTS agent_note_search_update AFTER UPDATE OF words ON agent_note BEGIN"
    " INSERT INTO agent_note_search (agent_note_search, rowid, words) VALUES ('delete', old.id, old.words);"
    " INSERT INTO agent_note_search (rowid, words) VALUES (new.id, new.words); END",
    "INSERT INTO agent_note_search (agent_note_search) VALUES ('rebuild')",
)
POSTGRES = (
    "CREATE INDEX IF NOT EXISTS agent_note_search ON agent_note"
    " USING gin (array_to_tsvector(string_to_array(words, ' ')))",
)
DROP_SQLITE = (
    "DROP TRIGGER IF EXISTS agent_note_search_insert",
    "DROP TRIGGER IF EXISTS agent_note_search_delete",
    "DROP TRIGGER IF EXISTS agent_note_search_update",
    "DROP TABLE IF EXISTS agent_note_search",
)
DROP_POSTGRES = ("DROP INDEX IF EXISTS agent_note_search",)


def create(apps, schema_editor):
    execute(schema_editor, {"sqlite": SQLITE, "postgresql": POSTGRES})


def drop(apps, schema_editor):
    execute(schema_editor, {"sqlite": DROP_SQLITE, "postgresql": DROP_POSTGRES})


def execute(schema_editor, statements):
    with schema_editor.connection.cursor() as cursor:
        for statement in statements[schema_editor.connection.vendor]:
            cursor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [("agent", "0002_groups")]

    operations = [migrations.RunPython(create, drop)]
