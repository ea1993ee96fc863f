"""The page of the playground, and what its script asks for: ``view(request, site)`` each.

All of them are for users with :data:`onebot.playground.door.PERMISSION`, and about their own
playground; a superuser may erase another's.
"""

import functools
from collections.abc import Callable

from django.conf import settings
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import get_script_prefix
from django.utils.translation import gettext as _

from agent.access.players import CHANGE_TOOLS
from agent.domain.playground import (
    ACCOUNT_PATTERN,
    is_playground,
    playground_account,
    playground_owner,
)
from onebot.models import Bot
from onebot.playground.door import PERMISSION, make_token
from onebot.playground.erasing import erase_playground
from onebot.playground.progress import load_progress
from onebot.playground.words import script_words
from tools.models.row_validation import check_ids, parse_ids
from tools.text.visible import escape_direction_chars

#: People of a playground that may be its owners.
MOST_OWNERS = 50
#: Playgrounds of others that a superuser is shown.
MOST_OTHERS = 100
#: Bytes of one picture, voice or file that the page takes.
MEDIA_BYTES = 8 * 2**20

View = Callable[..., HttpResponse]


def for_players(method: str) -> Callable[[View], View]:
    """The view for users who may use the playground, and for ``method`` alone."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def guarded(request: HttpRequest, site: AdminSite) -> HttpResponse:
            if not request.user.has_perm(PERMISSION):
                raise PermissionDenied
            if request.method != method:
                return HttpResponseNotAllowed([method])
            return view(request, site)

        return guarded

    return decorate


@for_players("GET")
def playground_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    account = _own_account(request)
    context = {
        **site.each_context(request),
        "title": _("Playground"),
        "account": account,
        "bot_name": settings.BOT_NAME or "FrostAgent",
        "socket_path": f"{get_script_prefix()}ws/frostagent",
        "words": script_words(),
        "gives_rights": request.user.has_perm(CHANGE_TOOLS),
        "media_bytes": MEDIA_BYTES,
        "others": _list_others(account) if _is_superuser(request) else [],
    }
    request.current_app = site.name
    return TemplateResponse(request, "admin/playground/page.html", context)


@for_players("POST")
def playground_token(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """A token for the next connection; like all pages of the admin it is kept by no cache."""
    token = make_token(_user_pk(request), str(request.session.session_key))
    return JsonResponse({"token": token})


@for_players("POST")
def playground_owners(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Makes the people with the ids in ``owners`` the owners of the bot."""
    text = request.POST.get("owners", "")
    if check_ids(text) or len(owners := parse_ids(text)) > MOST_OWNERS:
        return JsonResponse({"error": _("These are no ids of people.")}, status=400)
    bot, _made = Bot.objects.get_or_create(self_id=_own_account(request))
    if parse_ids(bot.owners) != owners:
        bot.owners = "\n".join(owners)
        bot.save(update_fields=["owners"])
    return JsonResponse({"owners": owners})


@for_players("POST")
def playground_erase(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Erases the own playground, or that of ``account``."""
    own = _own_account(request)
    account = request.POST.get("account") or own
    if not is_playground(account) or (account != own and not _is_superuser(request)):
        raise Http404
    return JsonResponse({"erased": erase_playground(account)})


@for_players("GET")
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


def _user_pk(request: HttpRequest) -> int:
    return int(request.user.pk or 0)


def _own_account(request: HttpRequest) -> str:
    return playground_account(_user_pk(request))
