"""System checks: settings that work, and are probably not what the owner wants."""

from collections.abc import Sequence

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.utils.translation import gettext as _


@register
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


@register
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
