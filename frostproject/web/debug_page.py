"""Django's error page, which ``DEBUG=true`` shows to every client: without the secrets of the
installation."""

from django.http import HttpRequest
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from frostproject.web.logs import REDACTED, list_secrets, redact_secrets


class RedactingFilter(SafeExceptionReporterFilter):
    """What views mark as sensitive is left out with ``DEBUG=true`` as well."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True


class RedactingReporter(ExceptionReporter):
    """Secrets are removed from the finished page: they occur in settings, local variables,
    addresses and messages."""

    def get_traceback_html(self) -> SafeString:
        return _redact(super().get_traceback_html())

    def get_traceback_text(self) -> SafeString:
        return _redact(super().get_traceback_text())


def _redact(page: str) -> SafeString:
    for secret in list_secrets():
        page = page.replace(escape(secret), REDACTED).replace(escape(repr(secret)[1:-1]), REDACTED)
    return mark_safe(redact_secrets(page))  # noqa: S308 - Django's own page, shortened
