"""One message of an alert on its way out: to a webhook by our own client, to everything else by
apprise, in a process that lives for this one message."""

import errno
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import translation

from agent.domain.alerts import (
    SCHEMES,
    AlertMessage,
    RouteOutcome,
    host_of,
    service_address,
)
from agent.domain.states import RouteKind
from tools.fetch import request as fetch
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.processes.child import read_output, start_program

#: For all of it. A webhook may answer so much.
POST_SECONDS, ANSWER_BYTES = 30.0, 64 * 1024
PROGRAM = ("-m", "agent.runtime.alert_program")
_OUTCOMES: tuple[tuple[type[fetch.FetchError], RouteOutcome], ...] = (
    (fetch.DestinationRefused, RouteOutcome.NOT_PUBLIC),
    (fetch.NameUnknown, RouteOutcome.NO_NAME),
    (fetch.TlsRefused, RouteOutcome.TLS),
    (fetch.RedirectRefused, RouteOutcome.REDIRECT),
    (fetch.StatusRefused, RouteOutcome.REFUSED),
    (fetch.TookTooLong, RouteOutcome.SLOW),
    (fetch.RequestRefused, RouteOutcome.UNREADABLE),
)
_UNREACHED = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH})


async def post_message(kind: str, address: str, message: AlertMessage) -> RouteOutcome:
    """What became of it, told in the language of the installation. Nothing of it runs on when it
    returns or is cancelled."""
    try:
        with translation.override(settings.LANGUAGE_CODE):
            told = message.as_json()
        if kind == RouteKind.WEBHOOK:
            await _post_webhook(address, told)
            return RouteOutcome.TOLD
        return await _post_service(kind, address, {"title": told["title"], "body": message.body})
    except fetch.FetchError as error:
        if getattr(error.__cause__, "errno", None) in _UNREACHED:
            return RouteOutcome.NO_CONNECTION
        known = (outcome for case, outcome in _OUTCOMES if isinstance(error, case))
        return next(known, RouteOutcome.UNKNOWN)
    except TimeoutError:
        return RouteOutcome.SLOW


async def _post_webhook(address: str, told: Mapping[str, Any]) -> None:
    fetcher = Fetcher(AllowList.parse(settings.FETCH_ALLOW, "alerts"))
    try:
        await fetcher.download(
            fetch.FetchRequest(
                address,
                "POST",
                {"Content-Type": "application/json"},
                json.dumps(told, ensure_ascii=False).encode(),
                max_bytes=ANSWER_BYTES,
                seconds=POST_SECONDS,
                is_private=True,
                follows_redirects=False,
            )
        )
    finally:
        await fetcher.close()


async def _post_service(kind: str, address: str, told: Mapping[str, Any]) -> RouteOutcome:
    try:
        url = service_address(kind, address)
    except ValueError:
        return RouteOutcome.UNREADABLE
    if host := host_of(kind, url):
        allowed = AllowList.parse(settings.FETCH_ALLOW, "alerts")
        await fetch.DestinationResolver(allowed).require_all(host)
    order = {"url": url, "schemes": SCHEMES[kind], "allowed": [*settings.FETCH_ALLOW], **told}
    process = await start_program(*PROGRAM)
    said = await read_output(process, POST_SECONDS, json.dumps(order).encode())
    words = said.decode("ascii", "replace").strip()
    return RouteOutcome(words) if words in RouteOutcome.values else RouteOutcome.FAILED
