"""An HTTP tool tried out from its page, and what came of it as the page shows it."""

from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings

from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.http_tools.dry_run import DryRun, dry_run_tool
from tools.models import HttpTool
from tools.secrets.store import load_secrets
from tools.text.readable import drop_surrogates, format_readable, shorten_text


def run_dry_run(row: HttpTool, arguments: Any) -> DryRun:
    """Make the request of ``row`` once, switched on or not, over a way out of its own that is
    closed again."""
    secrets = load_secrets()

    async def tried() -> DryRun:
        fetcher = Fetcher(AllowList.parse(settings.FETCH_ALLOW, "tools"))
        try:
            return await dry_run_tool(row, arguments, secrets, fetcher)
        finally:
            await fetcher.close()

    return async_to_sync(tried)()


def dry_run_context(trial: DryRun) -> dict[str, Any]:
    """The request and the answer as a page shows them, whatever a server sent; secrets are masked
    already."""
    result = trial.result
    return {
        "trial": trial,
        "milliseconds": round(trial.seconds * 1000),
        "request_url": drop_surrogates(trial.url),
        "request_headers": _lines(trial.headers),
        "request_body": drop_surrogates(shorten_text(trial.body)),
        "answer_headers": _lines(trial.answer_headers),
        "answer_text": drop_surrogates(shorten_text(trial.text)),
        "told": drop_surrogates(shorten_text(result.get_history_content() or "")),
        "structured_json": ""
        if result.structured_content is None
        else format_readable(result.structured_content),
        "error": drop_surrogates(shorten_text(trial.error)),
    }


def _lines(headers: Any) -> str:
    return drop_surrogates("\n".join(f"{name}: {value}" for name, value in headers.items()))
