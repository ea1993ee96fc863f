"""What every page says of the state of the program."""

from typing import Any
from urllib.parse import urlsplit

from django import template
from django.http.request import split_domain_port
from django.utils.translation import gettext

from agent.runtime import serving
from frostproject.signin import plain_http
from tools.local_time import present_clock
from tools.version import VERSION

register = template.Library()


@register.inclusion_tag("admin/outage.html", takes_context=True)
def outage(context: Any) -> dict[str, Any]:
    """Whether the database refuses to be written, for those who are signed in; no query."""
    serving_now = serving.get_serving() if getattr(context.get("user"), "is_staff", False) else None
    found = serving_now.outage() if serving_now else None
    return {"outage": found, "reason": gettext(found.reason) if found else ""}


@register.inclusion_tag("admin/zone_line.html", takes_context=True)
def zone_line(context: Any) -> dict[str, Any]:
    """Which time zone the page's times are of, and which version the program is, for those who are
    signed in."""
    keys = ("has_permission", "perms", "is_popup")
    return {key: context.get(key) for key in keys} | {"clock": present_clock(), "version": VERSION}


@register.inclusion_tag("admin/https_only.html", takes_context=True)
def https_only(context: Any) -> dict[str, Any]:
    """Where to sign in, for those who are at another host than those of https; a proxy may hide the
    port."""
    request = context.get("request")
    if (
        request is None
        or not plain_http.is_for_https_only()
        or getattr(context.get("user"), "is_authenticated", False)
    ):
        return {}
    addresses = plain_http.https_addresses()
    names = {urlsplit(address).hostname for address in addresses}
    return {"addresses": [] if split_domain_port(request.get_host())[0] in names else addresses}
