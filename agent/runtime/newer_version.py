"""Whether there is a newer version, as the address says that ``VERSION_URL`` names.

It is asked once a day. The answer is kept in the data folder, with the address that gave it, for
all processes that share it; a page reads that and waits for nobody.
"""

import contextlib
import json
import logging
import re
import time
from pathlib import Path

from django.conf import settings

from agent.runtime.daily_work import DailyWork
from tools.error_boundary import log_errors
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchError, FetchRequest
from tools.version import VERSION

logger = logging.getLogger(__name__)

EVERY_SECONDS, ASK_SECONDS, MOST_BYTES = 24 * 3600 - 60, 20, 64 * 2**10
_VERSION = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})")


def find_newer() -> str:
    """The version on record where it is newer than this one, else ""."""
    url, version = _load()
    return version if url == settings.VERSION_URL and _parts(version) > _parts(VERSION) else ""


def watch_versions() -> DailyWork:
    """Asks the address."""
    return DailyWork("newer version", _is_due, _ask)


def read_version(body: bytes) -> str:
    """What an address answers: an object with ``tag_name``, as a release of GitHub is one, or the
    version alone. "" for anything but figures and points, with or without a v before them."""
    text = body.decode("utf-8", "replace").strip()
    with contextlib.suppress(ValueError, RecursionError, KeyError):
        text = str(json.loads(text)["tag_name"]) if text.startswith("{") else text
    found = _VERSION.fullmatch(text)
    return found[1] if found else ""


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def _file() -> Path:
    return Path(settings.DATA_DIR, "newest_version")


def _load() -> tuple[str, str]:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        url, _line, version = _file().read_text("utf-8").partition("\n")
        return url, read_version(version.encode())
    return "", ""


def _is_due() -> bool:
    with contextlib.suppress(OSError):
        is_asked = _load()[0] == settings.VERSION_URL
        return not is_asked or _file().stat().st_mtime < time.time() - EVERY_SECONDS
    return True


async def _ask() -> None:
    """Nobody else asks meanwhile, nor again today; what cannot be read changes nothing."""
    url, known = settings.VERSION_URL, find_newer()
    fetcher = Fetcher(AllowList.parse(settings.FETCH_ALLOW, "tools"))
    with log_errors(logger, "The address of the newest version could not be asked"):
        _file().write_text(f"{url}\n{known}", "utf-8")
        try:
            request = FetchRequest(url, max_bytes=MOST_BYTES, seconds=ASK_SECONDS)
            version = read_version((await fetcher.download(request)).body)
            if version:
                _file().write_text(f"{url}\n{version}", "utf-8")
            else:
                logger.warning("VERSION_URL answers with something that is no version")
        except FetchError as error:
            logger.warning("VERSION_URL could not be asked: %s", error)
        finally:
            await fetcher.close()
