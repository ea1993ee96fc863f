"""What came of a try of an endpoint, in sentences for whoever set it up."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from agent.domain.endpoint import Ability
from agent.llm.errors.fault_words import explain_fault
from agent.llm.probing.probe import ProbeReport
from tools.findings import Finding, FindingLevel, fail_finding, ok_finding, warn_finding


def describe_probe(report: ProbeReport) -> list[Finding]:
    """What ``report`` shows, the worst first. No line holds what the endpoint said."""
    lines = [*_fault(report), *_tools(report), *_picture(report), *_others(report)]
    return sorted(lines, key=lambda line: list(FindingLevel).index(line.level), reverse=True)


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


def _fault(report: ProbeReport) -> Iterator[Finding]:
    if not report.fault:
        return
    told = explain_fault(report.fault)
    if report.fault_at == "result":
        yield fail_finding(
            _("It called the tool, and then refused the tool's result: %s") % told.text,
            _(
                "Answers that need a tool will fail. Choose another model, set thinking otherwise, "
                "or choose the right provider above, so that it is sent back what it said."
            ),
        )
    elif report.fault_at and report.fault_at != "question" and report.answers:
        words = _("%(question)s: %(fault)s")
        values = {"question": question_words(report.fault_at), "fault": told.text}
        yield fail_finding(words % values, told.advice)
    else:
        yield fail_finding(told.text, told.advice)


def _tools(report: ProbeReport) -> Iterator[Finding]:
    if report.has_called is False and not report.fault:
        yield warn_finding(
            _("It answered, but did not call the tool that it was told to call."),
            _(
                "Tools will hardly work with it. Small models often cannot; a local server may "
                "need a switch (vLLM: --enable-auto-tool-choice; llama.cpp: --jinja)."
            ),
        )
    if report.has_called and report.is_text_call:
        yield ok_finding(_("It called the tool, as text; that is understood."))
    elif report.has_called:
        yield ok_finding(_("It called the tool."))
    if report.has_used_result:
        yield ok_finding(_("It took the tool's result, and used it in its answer."))
    elif report.has_used_result is False:
        yield warn_finding(
            _("It took the tool's result, but its answer does not hold the number."),
            _("Answers with tools may be wrong: a larger model does better."),
        )


def _picture(report: ProbeReport) -> Iterator[Finding]:
    if report.has_seen:
        yield ok_finding(_("It saw the colour of a picture."))
    elif report.has_seen is False:
        yield warn_finding(
            _("It took a picture, but did not tell its colour."),
            _("Does the model really see? Else take away the mark “sees pictures”."),
        )


def _others(report: ProbeReport) -> Iterator[Finding]:
    asked = {call.what for call in report.calls}
    if "chat" in asked:
        yield ok_finding(_("It answered."))
    if "embedding" in asked:
        yield ok_finding(_("It embeds."))
    if "sound" in asked:
        yield ok_finding(_("It transcribes."))
    if len(report.refused_keys) < len(report.endpoint.keys) and report.refused_keys:
        numbers = ", ".join(str(place + 1) for place in sorted(report.refused_keys))
        yield warn_finding(
            _("Keys that it refused: %s") % numbers, _("Replace them, or delete them.")
        )
    if report.endpoint.abilities == frozenset({Ability.THINK}) or not report.endpoint.abilities:
        yield warn_finding(
            _("Nothing is marked that it can do, so it was asked nothing."), _("Mark it.")
        )
