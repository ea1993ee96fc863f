"""Whether a manifest's ``config_schema`` can be a form. Pure."""

from typing import Any

from django.utils.translation import gettext

from tools.schemas.arguments import UNUSABLE_SCHEMA, schema_messages


def check_config_schema(schema: dict[str, Any]) -> str:
    """Why ``schema`` is not that of a configuration, translated; "" when it is. Each default must
    be what its property takes."""
    if not schema:
        return ""
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return gettext("should be the JSON schema of an object, with properties")
    try:
        schema_messages(schema, {})
        for name, each in properties.items():
            if (
                isinstance(each, dict)
                and "default" in each
                and schema_messages(each, each["default"])
            ):
                return gettext("the default of %(name)s is not what it takes itself") % {
                    "name": name
                }
    except UNUSABLE_SCHEMA as error:
        return gettext("is no valid JSON schema: %(reason)s") % {
            "reason": getattr(error, "message", str(error))[:300]
        }
    return ""
