"""What the operator has changed so far, as one number: asked before each message that may be
answered."""

from agent.record.compiled_sql import PreparedSelect
from tools.models import ConfigVersion

version_query = PreparedSelect(ConfigVersion.objects.filter(pk=1).values_list("number"))


def settings_version() -> int:
    """The number of the last change of a row that the operator edits, by any process; 0 before the
    first."""
    found = version_query(1)
    return int(found[0][0]) if found else 0
