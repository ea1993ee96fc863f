"""What came of a try of an endpoint, in sentences for whoever set it up."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from django.utils.translation import gettext as _

from agent.domain.endpoint import Ability
from agent.llm.errors.fault_words import explain_fault
from agent.llm.probing.probe import ProbeReport


class ProbeLine(NamedTuple):
    """One thing that a try showed."""

    level: Literal["ok", "warn", "fail"]
    text: str
    advice: str = ""


def describe_probe(report: ProbeReport) -> list[ProbeLine]:
    """What ``report`` shows, the worst first. No line holds what the endpoint said."""
    lines = [*_fault(report), *_tools(report), *_picture(report), *_others(report)]
    return sorted(lines, key=lambda line: ("fail", "warn", "ok").index(line.level))


def question_words(what: str) -> str:
    """What people call the question :attr:`agent.llm.probing.probe.ProbedCall.what`."""
    return {
        "question": _("question with a tool"),
        "result": _("the tool's result"),
        "picture": _("picture"),
        "embedding": _("two words to compare"),
        "sound": _("half a second of sound"),
        "chat": _("question"),
    }.get(what, what)


def _fault(report: ProbeReport) -> Iterator[ProbeLine]:
    if not report.fault:
        return
    told = explain_fault(report.fault)
    if report.fault_at == "result":
        yield ProbeLine(
            "fail",
            _("It called the tool, and then refused the tool's result: %s") % told.text,
            _(
                "Answers that need a tool will fail. Choose another model, set thinking otherwise, "
                "or choose the right provider above, so that it is sent back what it said."
            ),
        )
    elif report.fault_at and report.fault_at != "question" and report.answers:
        words = _("%(question)s: %(fault)s")
        values = {"question": question_words(report.fault_at), "fault": told.text}
        yield ProbeLine("fail", words % values, told.advice)
    else:
        yield ProbeLine("fail", told.text, told.advice)


def _tools(report: ProbeReport) -> Iterator[ProbeLine]:
    if report.has_called is False and not report.fault:
        yield ProbeLine(
            "warn",
            _("It answered, but did not call the tool that it was told to call."),
            _(
                "Tools will hardly work with it. Small models often cannot; a local server may "
                "need a switch (vLLM: --enable-auto-tool-choice; llama.cpp: --jinja)."
            ),
        )
    if report.has_called and report.is_text_call:
        yield ProbeLine("ok", _("It called the tool, as text; that is understood."))
    elif report.has_called:
        yield ProbeLine("ok", _("It called the tool."))
    if report.has_used_result:
        yield ProbeLine("ok", _("It took the tool's result, and used it in its answer."))
    elif report.has_used_result is False:
        yield ProbeLine(
            "warn",
            _("It took the tool's result, but its answer does not hold the number."),
            _("Answers with tools may be wrong: a larger model does better."),
        )


def _picture(report: ProbeReport) -> Iterator[ProbeLine]:
    if report.has_seen:
        yield ProbeLine("ok", _("It saw the colour of a picture."))
    elif report.has_seen is False:
        yield ProbeLine(
            "warn",
            _("It took a picture, but did not tell its colour."),
            _("Does the model really see? Else take away the mark “sees pictures”."),
        )


def _others(report: ProbeReport) -> Iterator[ProbeLine]:
    asked = {call.what for call in report.calls}
    if "chat" in asked:
        yield ProbeLine("ok", _("It answered."))
    if "embedding" in asked:
        yield ProbeLine("ok", _("It embeds."))
    if "sound" in asked:
        yield ProbeLine("ok", _("It transcribes."))
    if len(report.refused_keys) < len(report.endpoint.keys) and report.refused_keys:
        numbers = ", ".join(str(place + 1) for place in sorted(report.refused_keys))
        yield ProbeLine(
            "warn", _("Keys that it refused: %s") % numbers, _("Replace them, or delete them.")
        )
    if report.endpoint.abilities == frozenset({Ability.THINK}) or not report.endpoint.abilities:
        yield ProbeLine(
            "warn", _("Nothing is marked that it can do, so it was asked nothing."), _("Mark it.")
        )
