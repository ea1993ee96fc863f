"""Who may let models be asked at which address.

A model endpoint may stand in the own network, as Ollama does. But what is asked there comes from
this machine, and what is answered is shown: so only superusers, and the settings, name addresses
that are not public.
"""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext as _

from agent.llm.endpoints.environment_endpoints import environment_endpoints
from tools.fetch.allow_list import AllowList
from tools.fetch.destinations import DestinationResolver
from tools.fetch.errors import DestinationRefused, FetchError
from tools.secrets.hosts import parse_host

LOOK_UP_SECONDS = 10.0


def find_address_problem(user: Any, url: str) -> str:
    """Why ``user`` may not have models asked at ``url``, as a translated sentence; "" where they
    may. The name is looked up for those who are no superusers."""
    if getattr(user, "is_superuser", False) or _is_in_environment(url):
        return ""
    try:
        async_to_sync(_require_public)(urlsplit(url).hostname or "")
    except DestinationRefused as error:
        words = _(
            "This address is not public: only a superuser may enter it, or FETCH_ALLOW in .env "
            "lists it. (%s)"
        )
        return words % error
    except (FetchError, TimeoutError) as error:
        return _("The host of this address cannot be found: is it written right? (%s)") % (
            error or type(error).__name__
        )
    return ""


async def _require_public(host: str) -> None:
    allow = AllowList.parse(settings.FETCH_ALLOW, "model")
    async with asyncio.timeout(LOOK_UP_SECONDS):
        await DestinationResolver(allow).require_all(host)


def _is_in_environment(url: str) -> bool:
    host = parse_host(url)
    return host is not None and any(
        parse_host(one.url) == host for one in environment_endpoints().values()
    )
