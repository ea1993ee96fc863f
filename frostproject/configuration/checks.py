"""System checks: settings that work, and are probably not what the owner wants."""

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Tags, Warning, register
from django.urls import get_resolver
from django.utils.translation import gettext as _

#: The tag of the checks here.
SETTINGS: Final = "settings"


@register(SETTINGS)
def check_model(app_configs: object = None, **_options: object) -> Sequence[CheckMessage]:
    """An endpoint without a model name is refused by most endpoints."""
    if not settings.UPSTREAM_ENDPOINT or settings.MODEL_NAME:
        return []
    return [
        Warning(
            _("UPSTREAM_ENDPOINT is set and MODEL_NAME is empty."),
            hint=_("Set MODEL_NAME to a model that the endpoint offers."),
            id="frost.W001",
        )
    ]


@register(SETTINGS)
def check_frame_limit(app_configs: object = None, **_options: object) -> Sequence[CheckMessage]:
    """Pictures come in frames of many megabytes."""
    sizes = (settings.DAPHNE_WEBSOCKET_MAX_MESSAGE_SIZE, settings.DAPHNE_WEBSOCKET_MAX_FRAME_SIZE)
    if min(sizes) >= 64 * 2**20:
        return []
    return [
        Warning(
            _("Frames over %(limit)d bytes close the OneBot connection.") % {"limit": min(sizes)},
            hint=_(
                "Set DAPHNE_WEBSOCKET_MAX_MESSAGE_SIZE and DAPHNE_WEBSOCKET_MAX_FRAME_SIZE to 64 "
                "MiB."
            ),
            id="frost.W002",
        )
    ]


@register(Tags.admin)
def check_pages(app_configs: Any = None, **options: Any) -> Sequence[CheckMessage]:
    """Django's own checks of the admin, which knows its pages once their addresses are read."""
    _ = get_resolver().url_patterns
    return check_admin_app(app_configs, **options)
