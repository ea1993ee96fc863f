"""What a list says about itself: what its table is for, which conditions are in
force, what its cells are called."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.templatetags import admin_list
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import display_for_value
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models.options import Options
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from tools.text.readable import escape_direction_chars, fill


@dataclass(frozen=True, slots=True)
class TableWords:
    """``what`` its rows are; where they come from (``begin``), for who sees none yet; what the
    table is called where its own name would be taken for another's (``name``), and how one is added
    (``add``)."""

    what: str | Promise = ""
    begin: str | Promise = ""
    name: str | Promise = ""
    add: str | Promise = ""


_NONE = TableWords()
_WRITTEN = _("The program writes them while it works.")

#: By the label of the model.
TABLES: dict[str, TableWords] = {
    "agent.Approval": TableWords(
        _("Tool calls that an owner has to allow before they are made."),
        _("A tool asks when “needs approval” is set on its page."),
    ),
    "agent.NoteProposal": TableWords(
        _("Changes to memory notes that a model proposes: nothing happens until you decide."),
        _("They come when notes are reviewed and some say the same."),
    ),
    "agent.ChatSession": TableWords(
        _("Every group and private chat of your bots; the one that spoke last is first."),
        _("A chat is here after its first message. Connect a bot on the page “First steps”."),
    ),
    "agent.Message": TableWords(
        _("Everything that was said, and why it was answered or not."),
        _("Say something in a chat of the bot, or in the playground."),
    ),
    "agent.OperatorAct": TableWords(
        _("What operators did in chats: who, when, and in which chat."),
        _("Open a chat and take it over, answer by hand, or silence it."),
    ),
    "agent.Run": TableWords(
        _("How each answer came about: model calls, tool calls, and what was sent."),
        _("A run begins when a message is answered."),
    ),
    "onebot.Bot": TableWords(
        _("The accounts that a OneBot client connects here."),
        _("An account is here once its client connects; the page “First steps” says how."),
    ),
    "tools.ToolConfig": TableWords(
        _("What the model can do, and who may have it done. Changes apply to the next message."),
        _("Tools are listed after the first start of the server."),
    ),
    "agent.ToolCall": TableWords(
        _("Every call of a tool, with its arguments and its result."),
        _("Ask the bot something that it needs a tool for, such as the weather."),
    ),
    "tools.HttpTool": TableWords(
        _("Tools of your own that ask an HTTP address; no program is needed."),
        _("Add one, or import the OpenAPI description of a service."),
    ),
    "tools.McpServer": TableWords(
        _(
            "Programs and addresses that give the bot tools: files, search, calendars. Their tools "
            "are listed under “Tool configs”."
        ),
        _("Add one, or import the JSON that its page offers."),
    ),
    "tools.Plugin": TableWords(
        begin=_("Put a plugin's folder into the folder of plugins; it appears here."),
    ),
    "tools.Secret": TableWords(
        _("Keys that HTTP tools and MCP servers use; the model never sees them."),
        _("Add one, and write {secret:name} where its value belongs."),
    ),
    "agent.ModelEndpoint": TableWords(
        _("The models that answer. The first is asked first, the others when it fails."),
        _("Until there is one, the built-in demo model answers. Add one with a provider's key."),
    ),
    "agent.Persona": TableWords(
        _("Who the bot is: its prompt, its tools, its limits. Agents work for other personas."),
        _("Add one."),
    ),
    "agent.PersonaChoice": TableWords(
        _("Which persona answers in which account, chat or to which person."),
        _("Without any, the default persona answers everywhere."),
    ),
    "agent.AlertRoute": TableWords(
        _("Where the alerts of the overview are told: once when one holds, and once when it ends."),
        _("Add one: a webhook, mail, a service of push messages, or the owners in private."),
    ),
    "agent.Budget": TableWords(
        _("How much may be spent, and what happens when too little is left."),
        _("Without any, only the limits of the environment count."),
    ),
    "agent.SpendSum": TableWords(
        _("Tokens and cost of each day: in all, and by model, chat, person and tool."),
        _("The first call of a model begins it."),
        name=_("Sums of each day"),
    ),
    "agent.Note": TableWords(
        _("What the bot remembers, and who may be told of it."),
        _("People ask the bot to remember something, or you add a note."),
    ),
    "agent.Sticker": TableWords(
        _("Small pictures that the bot may choose from by their words and send."),
        _("Upload a picture and say in a few words what it shows."),
    ),
    "agent.KeptFile": TableWords(
        _(
            "Copies of pictures, voice and files that people sent, kept for a while so that models "
            "can look again."
        ),
        _("They are kept when people send pictures, voice or files."),
    ),
    "agent.Description": TableWords(
        _("What pictures, voice and files of chats say in words, as the model was told."),
        _("They are written when a model looks at a picture or hears a voice message."),
    ),
    "agent.Reminder": TableWords(
        _("What is to be said in a chat at its time, by a model or as it is written."),
        _("Write /remind 10m tea in a chat, ask the bot for it, or add one here."),
        add=_("Add a reminder"),
    ),
    "agent.Manners": TableWords(
        _("How the bot behaves in which chats: when it answers, when it is quiet, how it writes."),
        _("Without any, the settings of the environment count everywhere."),
    ),
    "agent.EventRule": TableWords(
        _("What becomes of events and keywords: a text, a picture, the model, or a tool."),
        _("Without any, events are only on record. Add one, such as a welcome."),
        add=_("Add an event rule"),
    ),
    "agent.JoinRequest": TableWords(
        _("Who asks to be a friend or a member, and who invites the bot. Owners are told too."),
        _("They come from clients: friend requests, requests to join, invitations."),
        name=_("Requests"),
    ),
    "agent.RequestRule": TableWords(
        _("What is decided over requests before anybody looks. Nobody is let in without a rule."),
        _("Without any, every request waits for somebody."),
        add=_("Add a request rule"),
    ),
    "agent.Installation": TableWords(_("What counts for the whole installation.")),
    "auth.User": TableWords(
        _("Who may sign in to this admin. People of chats are under “People”."),
        name=_("Admin accounts"),
        add=_("Add an admin account"),
    ),
    "auth.Group": TableWords(
        _("Sets of rights: whoever is in a group has them."),
        name=_("Groups of rights"),
        add=_("Add a group of rights"),
    ),
    "tools.ToolConfigChange": TableWords(
        _("Who changed which setting, and what it was before."),
        _("A change that is saved on a page of the admin is recorded here."),
    ),
    "agent.Step": TableWords(_("Each single call of a model within a run."), _WRITTEN),
    "agent.Digest": TableWords(
        _("Summaries of older parts of chats, which stand for them when the model is asked."),
        _WRITTEN,
    ),
    "onebot.ClientEvent": TableWords(
        _("What clients reported besides messages: people who came and went, requests, bans."),
        _WRITTEN,
    ),
    "tools.PluginValue": TableWords(_("What plugins keep for themselves."), _WRITTEN),
}


def find_words(options: "Options[Any]") -> TableWords:
    """The words of a table; none of them where it has none."""
    return TABLES.get(options.label, _NONE)


def name_table(options: "Options[Any]") -> str:
    """What the table is called above its list and in the navigation."""
    return capfirst(str(find_words(options).name or options.verbose_name_plural))


def list_conditions(changes: ChangeList, request: HttpRequest) -> Iterator[tuple[str, str, str]]:
    """The conditions in force, each by what it is about, what it asks for, and the address without
    it: first those of the list's own filters, then those that a link or the address brought
    along."""
    offered: set[str] = set()
    for spec in changes.filter_specs:
        offered |= set(spec.expected_parameters())  # type: ignore[arg-type]  # a list of names
        choices = list(spec.choices(changes))
        for choice in choices[1:]:
            if choice["selected"]:
                title, without = str(capfirst(spec.title)), str(choices[0]["query_string"])
                yield title, str(choice["display"]), without
    for lookup, values in changes.get_filters_params().items():
        if lookup not in offered:
            title, value = _in_words(
                changes,
                lookup,
                str(values[-1] if isinstance(values, list) and values else values),
                request,
            )
            yield title, value, changes.get_query_string(remove=[lookup])


def _in_words(
    changes: ChangeList, lookup: str, value: str, request: HttpRequest
) -> tuple[str, str]:
    """What ``lookup`` is about, and ``value`` as people call it where the user may see that."""
    name, _parts, how = lookup.partition("__")
    if how == "lt" and name in ("id", "pk"):
        return gettext("Older than"), f"#{value}"
    try:
        field: Any = changes.model._meta.get_field(name)
    except FieldDoesNotExist:
        return name, value
    label = str(capfirst(getattr(field, "verbose_name", name)))
    if field.is_relation and field.related_model:
        return label, _row_name(changes, field.related_model, value, request)
    return label, str(dict(getattr(field, "flatchoices", ())).get(value, value))


def _row_name(changes: ChangeList, model: Any, value: str, request: HttpRequest) -> str:
    pages = changes.model_admin.admin_site._registry.get(model)
    if pages is None or not pages.has_view_permission(request):
        return f"#{value}"
    try:
        return str(pages.get_queryset(request).filter(pk=value).first() or f"#{value}")
    except (ValueError, ValidationError, OverflowError):
        return f"#{value}"


def name_controls(fields: Mapping[str, Any], row: str = "") -> None:
    """Give every field of a table a name of its own for those who do not see the column's head: the
    column, and which ``row`` it is."""
    for field in fields.values():
        if not field.widget.is_hidden and field.label:
            field.widget.attrs.setdefault("aria-label", f"{field.label}{row}")


def draw_list(changes: ChangeList) -> dict[str, Any]:
    """What the template of a list asks for: heads of columns, and each row as its form and its
    cells. A ``<td>`` gets the head of its column as an attribute, which narrow screens show before
    it; a ``<th>``, which names the row, gets none. In neither does a name turn the direction of
    what stands beside it."""
    for form in changes.formset.forms if changes.formset else ():
        name_controls(form.fields, f": {form.instance}")
    headers = list(admin_list.result_headers(changes))
    heads = (
        "" if "action-checkbox" in str(head["class_attrib"]) else head["text"] for head in headers
    )
    # The last is for the cell of a key, which has no head.
    labels = [fill(' data-label="{}"', capfirst(str(head))) for head in (*heads, "")]
    rows = quick_rows(changes) or [(row.form, row) for row in admin_list.results(changes)]
    return {
        "cl": changes,
        "result_hidden_fields": list(admin_list.result_hidden_fields(changes)),
        "result_headers": headers,
        "num_sorted_fields": sum(bool(head.get("sorted")) for head in headers),
        "results": [
            (form, SafeString(escape_direction_chars("".join(map(_label_cell, cells, labels)))))
            for form, cells in rows
        ],
    }


def quick_rows(changes: ChangeList) -> Iterator[tuple[Any, Iterable[str]]] | None:
    """The rows of a list that is only read, as Django would draw them: it looks up for each cell
    anew what all cells of a column share. None where not all columns are those of its pages."""
    linked, names = changes.list_display_links or (), list(map(str, changes.list_display))
    shown: list[Any] = [getattr(changes.model_admin, name, None) for name in names]
    are_columns = all(hasattr(one, "show") for one in shown)  # tools.admin.record_pages.Column
    if changes.formset or changes.is_popup or not are_columns:
        return None
    first = next((name for name in names if name in linked), None)
    tags = ("th" if name == first else "td" for name in names)
    columns = [
        (one.show, one.boolean, name in linked, f'<{tag} class="field-{name}">{{}}</{tag}>')
        for one, name, tag in zip(shown, names, tags, strict=True)
    ]
    ending = add_preserved_filters(vars(changes), "")
    empty = changes.model_admin.get_empty_value_display()

    def draw(row: Any) -> Iterator[str]:
        for show, boolean, is_linked, form in columns:
            words = show(row)
            if not isinstance(words, str) or not words.strip():
                words = display_for_value(None if isinstance(words, str) else words, empty, boolean)
            if is_linked:
                words = fill('<a href="{}{}">{}</a>', changes.url_for_result(row), ending, words)
            yield fill(form, words)

    return ((None, draw(row)) for row in changes.result_list)


def _label_cell(cell: str, label: str) -> str:
    return f"<td{label}{cell[3:]}" if cell.startswith("<td") else cell
