"""The page of the playground, and what its script asks for: ``view(request, site)`` each.

All of them are for users with :data:`onebot.playground.door.PERMISSION`, as the table of pages
says (:mod:`frostproject.cockpit.site`), and about their own playground; a superuser may erase
another's.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
)
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import get_script_prefix
from django.utils.translation import gettext, gettext_lazy as _

from agent.access.players import CHANGE_TOOLS
from agent.domain.types import (
    ACCOUNT_PATTERN,
    is_playground,
    playground_account,
    playground_owner,
)
from agent.models import (
    Budget,
    ChatSession,
    Description,
    KeptFile,
    Manners,
    Message,
    MessageMedia,
    Note,
    NoteProposal,
    PersonaChoice,
    ResultPicture,
    Run,
    Step,
    Tally,
)
from agent.pages import run_facts
from agent.pages.reasons import reason_words
from agent.runtime import wiring
from onebot.models import Bot, ClientEvent
from onebot.playground.door import make_token
from tools.models.tool_config import check_ids, parse_ids
from tools.text.readable import drop_surrogates, escape_direction_chars

#: People of a playground that may be its owners.
MOST_OWNERS = 50
#: Playgrounds of others that a superuser is shown.
MOST_OTHERS = 100
#: Bytes of one picture, voice or file that the page takes.
MEDIA_BYTES = 8 * 2**20


def playground_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    account = _own_account(request)
    context = {
        **site.each_context(request),
        "title": gettext("Playground"),
        "account": account,
        "bot_name": settings.BOT_NAME or "FrostAgent",
        "socket_path": f"{get_script_prefix()}ws/frostagent",
        "words": SCRIPT_WORDS,
        "gives_rights": request.user.has_perm(CHANGE_TOOLS),
        "media_bytes": MEDIA_BYTES,
        "others": _list_others(account) if _is_superuser(request) else [],
    }
    request.current_app = site.name
    return TemplateResponse(request, "admin/playground/page.html", context)


def playground_token(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """A token for the next connection; like all pages of the admin it is kept by no cache."""
    token = make_token(int(request.user.pk or 0), str(request.session.session_key))
    return JsonResponse({"token": token})


def playground_owners(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Makes the people with the ids in ``owners`` the owners of the bot."""
    text = request.POST.get("owners", "")
    if check_ids(text) or len(owners := parse_ids(text)) > MOST_OWNERS:
        return JsonResponse({"error": gettext("These are no ids of people.")}, status=400)
    bot, _made = Bot.objects.get_or_create(self_id=_own_account(request))
    if parse_ids(bot.owners) != owners:
        bot.owners = "\n".join(owners)
        bot.save(update_fields=["owners"])
    return JsonResponse({"owners": owners})


def playground_erase(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Erases the own playground, or that of ``account``."""
    own = _own_account(request)
    account = request.POST.get("account") or own
    if not is_playground(account) or (account != own and not _is_superuser(request)):
        raise Http404
    return JsonResponse({"erased": erase_playground(account)})


def playground_run(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What became of one message, as a fragment; 204 when that is what the page has ``seen``."""
    progress = load_progress(
        _own_account(request),
        request.GET.get("chat", ""),
        request.GET.get("message", ""),
        request.user,
    )
    if progress.digest == request.GET.get("seen"):
        return HttpResponse(status=204)
    page = render_to_string("admin/playground/run.html", {"progress": progress}, request)
    answer = HttpResponse(escape_direction_chars(page))
    answer["X-Playground-Seen"] = progress.digest
    answer["X-Playground-Active"] = "1" if progress.is_active else "0"
    return answer


def _list_others(own: str) -> list[tuple[str, str]]:
    """The account and the user of each other playground; the name is "" when the user is gone."""
    rows = Bot.objects.filter(self_id__regex=ACCOUNT_PATTERN).exclude(self_id=own)
    accounts = list(rows.order_by("self_id").values_list("self_id", flat=True)[:MOST_OTHERS])
    users = User.objects.in_bulk([playground_owner(account) for account in accounts])
    names = {pk: user.get_username() for pk, user in users.items()}
    return [(account, names.get(playground_owner(account), "")) for account in accounts]


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _own_account(request: HttpRequest) -> str:
    return playground_account(int(request.user.pk or 0))


# Erasing everything of a playground: its chats with all that was done in them, what was remembered
# of them, our copies of its media. What it cost stays: that money was spent.

#: Rows that one transaction erases: others write between two of them.
BATCH = 100


def erase_playground(account: str) -> int:
    """Erase what is on record of ``account``; how many messages there were. Blocks.

    A client may be connected and an answer under way: whoever works on it finds its claim gone, and
    writes and sends nothing more. Called again after a failure, it goes on. Raises ValueError for
    an account that is no playground.
    """
    if not is_playground(account):
        raise ValueError(f"{account} is no playground")
    count, kept, read = 0, set[int](), set[int]()
    for session in _sessions(account):
        count += _erase_messages(session, kept, read)
        with transaction.atomic():
            pictures = ResultPicture.objects.filter(session=session)
            kept |= set(pictures.values_list("kept", flat=True))
            # Of what came meanwhile, the cascade erases the rows.
            ChatSession.objects.filter(pk=session).delete()
    _erase_copies(kept, read)
    _erase_settings(account)
    return count


def _sessions(account: str) -> Iterator[int]:
    """The chats, the newest last; each is to be erased before the next is asked for."""
    rows = ChatSession.objects.filter(account=account).order_by("pk").values_list("pk", flat=True)
    while (pk := rows.first()) is not None:
        yield pk


def _erase_messages(session: int, kept: set[int], read: set[int]) -> int:
    """Erase the messages of a chat and the runs for them; add the keys of their copies and of what
    was read in these."""
    count = 0
    rows = Message.objects.filter(session=session).order_by("-pk").values_list("pk", flat=True)
    while pks := list(rows[:BATCH]):
        with transaction.atomic():
            media = MessageMedia.objects.filter(message__in=pks)
            for copy, description in media.values_list("kept", "description"):
                kept |= {copy} - {None}
                read |= {description} - {None}
            Run.objects.filter(message__in=pks).only("pk").delete()
            Message.objects.filter(pk__in=pks).only("pk").delete()
        count += len(pks)
    return count


def _erase_copies(kept: set[int], read: set[int]) -> None:
    """Erase copies and what was read in them, where no message of another chat has the same."""
    files = wiring.build_file_store()
    with transaction.atomic():
        Description.objects.filter(pk__in=read, uses=None).delete()
        unused = KeptFile.objects.filter(pk__in=kept, uses=None, results=None)
        hashes = list(unused.values_list("sha256", flat=True))
        KeptFile.objects.filter(sha256__in=hashes).delete()
    for sha256 in hashes:
        files.remove(sha256)


@transaction.atomic
def _erase_settings(account: str) -> None:
    """Erase what was remembered and chosen; the bot's row too, unless it is connected."""
    notes = Note.objects.filter(account=account)
    pks = set(notes.values_list("pk", flat=True))
    for proposal in NoteProposal.objects.all() if pks else ():
        if pks & set(proposal.note_ids):
            proposal.delete()
    notes.delete()
    PersonaChoice.objects.filter(account=account).delete()
    Manners.objects.filter(account=account).delete()
    Budget.objects.filter(subject__startswith=f"onebot:{account}").delete()
    Tally.objects.filter(subject__startswith=f"onebot:{account}").delete()
    ClientEvent.objects.filter(self_id=account).delete()
    Bot.objects.filter(self_id=account, online=False).delete()


# What became of one message of a playground, read from the record: the decision, the runs for it
# with their steps and calls, and what was sent.

#: Runs of one message, steps and messages of one run that are shown; the run's own page has all.
RUN_LIMIT, STEP_LIMIT, SENT_LIMIT = 5, 30, 50
#: What of its own playground everybody sees.
SEEN = frozenset({"step", "toolcall", "message", "approval"})
State = Message.State
_ACTIVE = (State.WAITING, State.RUNNING, State.PENDING, State.SENT)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """One run: with its steps, each as a dictionary with the calls inside, and what it sent."""

    run: Run
    seconds: str
    sums: dict[str, Any]
    notes: list[str]
    steps: list[dict[str, Any]]
    sent: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Progress:
    """The message, why it is answered or not, and what was done for it; empty while it is not on
    record."""

    session: ChatSession | None = None
    message: Message | None = None
    reason: str = ""
    runs: list[ShownRun] = field(default_factory=list)
    is_active: bool = True
    digest: str = "none"


def load_progress(account: str, chat: str, message_id: str, user: object) -> Progress:
    """Of the message that the client of ``account`` knows by ``message_id``, in the chat with that
    key; where that is an answer, of the message that it answers. As ``user`` may see it."""
    kind, _colon, peer = chat.partition(":")
    columns = {"platform": "onebot", "account": account, "kind": kind, "peer_id": peer}
    session = ChatSession.objects.filter(**columns).first() if message_id else None
    if session is None:
        return Progress()
    found = Message.objects.filter(session=session, message_id=message_id[:128]).order_by("-pk")
    message = _asked(found.defer("segments", "raw").first())
    if message is None:
        return Progress(session)
    if message.direction == Message.Direction.OUT:
        found_runs = Run.objects.filter(pk=message.run_id or 0)
    else:
        found_runs = Run.objects.filter(message=message).order_by("-pk")[:RUN_LIMIT]
    runs = [_shown_run(run, user) for run in found_runs]
    is_active = message.state in _ACTIVE or any(
        shown.run.state == Run.State.RUNNING or any(one.state in _ACTIVE for one in shown.sent)
        for shown in runs
    )
    reason = reason_words(message, drop_surrogates(message.detail[:500]))
    return Progress(session, message, reason, runs, is_active, _digest(message, runs))


def _asked(message: Message | None) -> Message | None:
    """The message that was answered: by ``message`` itself, if that went out, and together with
    it, if it was merged."""
    if message is None:
        return None
    if message.direction == Message.Direction.OUT and message.run and message.run.message_id:
        message = message.run.message
    return message.merged_into or message if message else None


def _shown_run(run: Run, user: object) -> ShownRun:
    rows = run_facts.load_run_rows(run, SEEN, "request")
    for step in rows.steps:
        run_facts.hold_back_endpoints(step, user)
    return ShownRun(
        run=run,
        seconds=run_facts.format_run_duration(run),
        sums=run_facts.load_sums(run),
        notes=[run_facts.shown_note(drop_surrogates(str(note))) for note in run.notes],
        steps=[_shown_step(step, rows) for step in rows.steps[:STEP_LIMIT]],
        sent=rows.messages[:SENT_LIMIT],
    )


def _shown_step(step: Step, rows: run_facts.RunRows) -> dict[str, Any]:
    answer = step.response.get("content") if isinstance(step.response, dict) else ""
    return {
        "step": step,
        "text": (drop_surrogates(answer) if isinstance(answer, str) else ""),
        "calls": run_facts.describe_calls(step, rows),
        **run_facts.describe_step(step),
    }


def _digest(message: Message, runs: Sequence[ShownRun]) -> str:
    """What changes with all that is shown."""
    facts: list[Any] = [message.pk, message.state, message.reason, message.detail]
    for shown in runs:
        facts += [shown.run.pk, shown.run.state, shown.run.error, len(shown.steps)]
        facts += [(one.pk, one.state, one.detail, one.recalled_at) for one in shown.sent]
        for made in chain.from_iterable(step["calls"] for step in shown.steps):
            call, approval = made["call"], made["approval"]
            facts += [call.pk, call.state, call.progress, approval and approval.state]
            facts += [(run.pk, run.state) for run in made["runs"]]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


# What the script of the playground says, in the reader's language.


#: The texts by the names that the script has for them; ``{name}`` is filled there.
SCRIPT_WORDS = {
    "connecting": _("Connecting…"),
    "connected": _("Connected"),
    "closed": _("Not connected; trying again in {seconds} s"),
    "refused": _("The server did not let this page in; trying again in {seconds} s"),
    "replaced": _("Opened in another tab: this one is not connected any more."),
    "forbidden": _("You may not use the playground any more, or your sign-in has ended."),
    "signedOut": _("Your sign-in has ended: load the page again."),
    "cutByFailure": _("Disconnected, as chosen"),
    "notSent": _("Not sent: the playground is not connected."),
    "eraseAsk": _("Erase all chats of the playground, with everything on record of them?"),
    "erased": _("{count} messages were erased."),
    "eraseFailed": _("The playground could not be erased; try again."),
    "storageFull": _("Pictures and voice are shown until the page is loaded again."),
    "me": _("Me"),
    "ming": _("Xiao Ming"),
    "hong": _("Xiao Hong"),
    "group": _("Test group"),
    "privateChat": _("private"),
    "groupChat": _("group, {count} members"),
    "owner": _("group owner"),
    "admin": _("administrator"),
    "member": _("member"),
    "botOwner": _("owner of the bot"),
    "stranger": _("not a friend"),
    "edit": _("Edit {name}"),
    "taken": _("There is one with this id already."),
    "everyone": _("everyone"),
    "bot": _("bot"),
    "typing": _("is typing…"),
    "quote": _("Quote"),
    "recall": _("Recall"),
    "select": _("Choose"),
    "showRun": _("Run"),
    "recalled": _("{name} recalled a message"),
    "lostQuote": _("a message that is not here"),
    "image": _("picture"),
    "voice": _("voice"),
    "video": _("video"),
    "file": _("file"),
    "save": _("Save {name}"),
    "gone": _("not kept after loading the page again"),
    "forwardOf": _("Chat history"),
    "messages": _("{count} messages"),
    "chosen": _("{count} chosen"),
    "empty": _("Nothing was said here yet."),
    "tooLarge": _("{name} is too large: {limit} MiB at most."),
    "remove": _("Remove {name}"),
    "record": _("Record voice"),
    "stop": _("Stop recording"),
    "noMicrophone": _("The browser gives this page no microphone."),
    "part": _("{count} parts"),
    "elsewhere": _("loaded from {address} by real clients"),
    "reaction": _("reaction"),
    "peopleFound": _("{count} to mention: arrow keys choose, Enter takes, Escape closes"),
    "poked": _("{name} poked {target}"),
    "joined": _("{name} joined the group"),
    "didMute": _("{bot} muted {name} for {minutes} min"),
    "didUnmute": _("{bot} lifted the mute of {name}"),
    "didMuteAll": _("{bot} muted the whole group"),
    "didUnmuteAll": _("{bot} lifted the mute of the group"),
    "didKick": _("{bot} removed {name} from the group"),
    "didCard": _("{bot} gave {name} the card “{words}”"),
    "didTitle": _("{bot} gave {name} the title “{words}”"),
    "didEssence": _("{bot} made a message of {name} an essence"),
    "didNoEssence": _("A message of {name} is no essence any more"),
    "didAnnounce": _("Announcement of {bot}: {words}"),
    "didLike": _("{bot} liked {name} ({count})"),
    "didDeleteFile": _("{bot} deleted the file {name}"),
    "leave": _("{name} leaves"),
    "left": _("{name} left the group"),
    "askJoin": _("ask to join"),
    "askFriend": _("ask to be a friend"),
    "asked": _("{name}: {words}"),
    "didApprove": _("{bot} approved what {name} asked for: {words}"),
    "didRefuse": _("{bot} refused what {name} asked for: {words}"),
    "personMuted": _("{name} is muted here and can say nothing."),
    "essence": _("essence"),
    "muted": _("The bot is muted here."),
    "unmuted": _("The bot may speak here again."),
    "unmute": _("Lift the mute"),
    "failure": _("Answered with a failure: {action} ({failure})"),
    "unknownAction": _("An action that the playground does not know: {action}"),
    "noChat": _("A message for a chat that is not here: {chat}"),
    "muteFailure": _("muted"),
    "timeoutFailure": _("no response"),
    "errorFailure": _("error"),
    "riskFailure": _("error"),
    "slowFailure": _("slow"),
    "disconnectFailure": _("disconnected"),
}
