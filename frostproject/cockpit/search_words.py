"""What can be found by its words alone: pages of the navigation, acts, and fields of forms.

Each is found by what it is called in the reader's language and in the other ones.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import FieldDoesNotExist
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext, gettext_noop, override

from frostproject.cockpit.tables import find_words, name_table
from tools.admin.settings_page import SettingsAdmin
from tools.text.readable import escape_direction_chars
from tools.text.storable import make_storable

#: Characters of a query that count, words of it, and characters of a name that are shown.
MOST_TYPED, MOST_WORDS, SHOWN = 100, 8, 80
#: The worst rank of a hit that is called as was asked.
IN_LABEL = 2


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found. ``key`` tells it from all others of its ``kind``; ``values`` is what fields
    that name it hold, by their form; ``texts`` what it was found by beside its label."""

    kind: str
    key: str
    label: str
    url: str
    note: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    def rank(self, words: tuple[str, ...]) -> int:
        """How well ``words`` fit: as :func:`rank_label` says of the label."""
        return rank_label(self.label, words)


def rank_label(label: str, words: tuple[str, ...]) -> int:
    """How well ``words`` fit: 0 best, 3 where other texts than ``label`` hold them."""
    words, label = tuple(map(plain, words)), plain(label)
    whole = " ".join(words)
    if label == whole:
        return 0
    if label.startswith(whole):
        return 1
    return IN_LABEL if all(word in label for word in words) else IN_LABEL + 1


def plain(text: str) -> str:
    """``text`` as it is compared: without case, and without different widths of one sign."""
    return unicodedata.normalize("NFKC", text).casefold()


def split_words(query: str) -> tuple[str, ...]:
    """The words that a query asks for."""
    return tuple(make_storable(query[:MOST_TYPED]).replace("\ufffd", " ").split()[:MOST_WORDS])


def show_name(text: str) -> str:
    """A name in one line that turns no direction; a long one is cut."""
    line = " ".join(text.split())
    return escape_direction_chars(line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…")


#: Fields by other words that people use for them, in both languages.
OTHER_WORDS = {
    "agent.Manners.silenced": "mute quiet silent shut up 静音 禁言 闭嘴 不说话",
    "agent.Manners.quiet_hours": "mute night do not disturb 静音 免打扰 夜间 勿扰",
    "agent.Manners.denied_people": "block ban blacklist 黑名单 拉黑 屏蔽",
    "agent.Manners.allowed_people": "allow whitelist 白名单",
    "agent.Manners.wake_names": "alias nickname trigger keyword 别名 昵称 唤醒 关键词",
    "agent.Manners.wake_prefixes": "trigger keyword 唤醒 关键词",
    "agent.Manners.wake_pattern": "regex trigger keyword 正则 唤醒 关键词",
    "agent.Manners.sends_per_minute": "rate limit 限速 频率",
    "agent.Budget.limit": "money cost price 花费 费用 钱",
    "agent.Persona.prompt": "system prompt character 提示词 系统提示 人设",
    "agent.Installation.time_zone": "clock timezone 时间 时区",
    "onebot.Bot.owners": "owner admin master 主人 管理员",
}
#: Acts that are a button of a page: what they are called, the page, the permission, other words.
ACTS = (
    (
        gettext_noop("Silence everything"),
        "admin:agent_manners_changelist",
        "agent.change_manners",
        "mute quiet stop 静音 禁言 闭嘴",
    ),
    (gettext_noop("Change password"), "admin:password_change", "", "密码"),
)


def find_in_words(request: HttpRequest, site: AdminSite, words: tuple[str, ...]) -> list[Hit]:
    """Pages, acts and fields that the user may open and that hold all ``words``, in the words of
    the reader's language."""
    shown = str(get_language() or settings.LANGUAGE_CODE)
    found = {(hit.kind, hit.key): hit for hit in _list_all(request, site)}
    texts = {at: [hit.label, hit.note, *hit.texts] for at, hit in found.items()}
    for code, _name in settings.LANGUAGES:
        if code != shown:
            with override(code):
                for hit in _list_all(request, site):
                    texts[hit.kind, hit.key] += [hit.label, hit.note]
    return [hit for at, hit in found.items() if _hold(texts[at], words)]


def _hold(texts: Iterable[str], words: Iterable[str]) -> bool:
    whole = plain("\n".join(texts))
    return all(plain(word) in whole for word in words)


def _list_all(request: HttpRequest, site: AdminSite) -> Iterator[Hit]:
    for group in site.get_app_list(request):
        for entry in (tab for one in group["models"] for tab in one.get("tabs", (one,))):
            if url := entry.get("admin_url"):
                yield Hit("page", url, str(capfirst(entry["name"])), url, str(group["name"]))
            if url := entry.get("add_url"):
                yield Hit("act", url, _name_adding(entry), url, str(group["name"]))
    for words, name, permission, others in ACTS:
        if not permission or request.user.has_perm(permission):
            url = reverse(name)
            yield Hit("act", f"{url}#{words}", gettext(words), url, texts=(others,))
    for model, pages in site._registry.items():
        if isinstance(pages, SettingsAdmin):
            yield from _list_fields(request, model._meta.label, pages)


def _name_adding(entry: Mapping[str, Any]) -> str:
    options = entry["model"]._meta
    return str(find_words(options).add or gettext("Add %(name)s") % {"name": options.verbose_name})


def _list_fields(request: HttpRequest, label: str, pages: "SettingsAdmin") -> Iterator[Hit]:
    """The fields of a form: of a new row, or of the one that there is. Where neither can be opened
    they lead to the list."""
    options, is_only = pages.opts, label == "agent.Installation"
    if not pages.has_add_permission(request) and not pages.has_change_permission(request):
        return
    page = "add" if pages.has_add_permission(request) else "changelist"
    url = reverse(f"admin:{options.app_label}_{options.model_name}_{page}")
    shown = set(pages.get_readonly_fields(request))
    for name in flatten_fieldsets(pages.get_fieldsets(request)):
        if name not in shown and (called := name_field(pages, str(name))):
            at = f"{url}#id_{name}" if page == "add" or is_only else url
            words = OTHER_WORDS.get(f"{label}.{name}", "")
            yield Hit("setting", f"{label}.{name}", called, at, name_table(options), texts=(words,))


def name_field(pages: "ModelAdmin[Any]", name: str) -> str:
    """What a field of a form is called; "" for what nobody can fill in, or has no words for."""
    field: Any = getattr(pages.form, "base_fields", {}).get(name)
    label = field.label if field is not None else None
    if field is None:
        with suppress(FieldDoesNotExist):
            column: Any = pages.model._meta.get_field(name)
            label = column.verbose_name if column.editable else None
    return str(capfirst(str(label))) if isinstance(label, Promise) else ""
