"""The last log lines of this server process, for those who may see them."""

import logging
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from frostproject.web.logs import LINES_KEPT, list_recent_lines
from tools.admin.record_pages import parse_row_number

LEVELS = ("INFO", "WARNING", "ERROR")
#: Lines on the page.
LINES_SHOWN = 300


def log_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """The page, or with ``?part=lines`` the lines alone, which the page asks for again and
    again."""
    level = request.GET.get("level", LEVELS[0])
    level = level if level in LEVELS else LEVELS[0]
    words, run = request.GET.get("q", "").strip(), parse_row_number(request.GET.get("run", ""))
    lines = list_recent_lines(getattr(logging, level), words, run)
    shown: dict[str, Any] = {
        "title": _("Log of the server"),
        "lines": lines[:LINES_SHOWN],
        "found": len(lines),
        "level": level,
        "levels": LEVELS,
        "words": words,
        "run": run or "",
        "kept": LINES_KEPT,
    }
    is_part = request.GET.get("part") == "lines"
    shown |= {} if is_part else site.each_context(request)
    page = TemplateResponse(request, f"admin/log/{'lines' if is_part else 'page'}.html", shown)
    page["Cache-Control"] = "no-store"
    return page
