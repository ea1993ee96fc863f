"""Keys of sessions become their digests: who is signed in stays so."""

import hashlib
from typing import Any

from django.db import migrations


def digest_keys(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("sessions", "Session").objects.using(schema_editor.connection.alias)
    for key in list(rows.values_list("session_key", flat=True)):
        digest = hashlib.sha256(key.encode()).hexdigest()[:40]
        rows.filter(session_key=key).update(session_key=digest)


class Migration(migrations.Migration):
    dependencies = [
        ("frostproject", "0002_sign_in_sessions"),
        ("sessions", "0001_initial"),
    ]

    operations = [migrations.RunPython(digest_keys, migrations.RunPython.noop)]
