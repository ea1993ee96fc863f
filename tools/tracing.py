"""Spans for OpenTelemetry, in the words of its GenAI conventions.

Until :func:`switch_on` is called nothing is made, and a span costs one comparison. No span holds
what people, models or tools say. Names and attributes:
https://opentelemetry.io/docs/specs/semconv/gen-ai/ (in development, as of November 2026).

Which run log lines belong to.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

#: The key of the run that the present task works on, which the lines name that it logs, and those
#: of tasks begun there; 0 outside of one.
log_run: ContextVar[int] = ContextVar("log_run", default=0)


def name_runs_in_log() -> None:
    """Have every log record of this process hold its run, as ``record.run``, from where it was
    made: it may be written later, in another task."""
    make = logging.getLogRecordFactory()
    if getattr(make, "names_runs", False):
        return

    def make_record(*args: object, **kwargs: object) -> logging.LogRecord:
        record = make(*args, **kwargs)
        record.run = log_run.get()
        return record

    make_record.names_runs = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make_record)


AttributeValue: TypeAlias = str | int | float | bool | list[str]

_tracers: list["Tracer"] = []
_NO_SPAN = nullcontext()


def switch_on(tracer: "Tracer | None") -> None:
    """Have spans made by ``tracer`` from now on; None: by nobody."""
    _tracers[:] = [tracer] if tracer is not None else []


def open_span(
    name: str,
    attributes: Mapping[str, AttributeValue | None],
    *,
    is_client: bool = False,
) -> AbstractContextManager["Span | None"]:
    """A span around what is done inside, child of the one that is open in this task. Attributes
    that are None are left out. None where no spans are made. With ``is_client`` somebody else does
    the work. An error that passes through marks it with its type alone: its text
    could hold words of a chat."""
    if not _tracers:
        return _NO_SPAN
    return _spanning(_tracers[0], name, _known(attributes), is_client)


@contextmanager
def _spanning(
    tracer: "Tracer", name: str, attributes: dict[str, AttributeValue], is_client: bool
) -> Iterator["Span"]:
    from opentelemetry.trace import SpanKind  # of the tracer, and loaded with it

    with tracer.start_as_current_span(
        name,
        kind=SpanKind.CLIENT if is_client else SpanKind.INTERNAL,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:
            fail_span(span, type(error).__name__)
            raise


def add_to_span(span: "Span | None", attributes: Mapping[str, AttributeValue | None]) -> None:
    """Add ``attributes``; those that are None are left out."""
    if span is not None:
        span.set_attributes(_known(attributes))


def fail_span(span: "Span | None", kind: str) -> None:
    """Mark what was done as failed, by an error of ``kind``."""
    if span is not None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR))


def _known(attributes: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}
