"""Voice of messages, played from our own copies and never from a sender's address."""

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from agent.models import KeptFile
from agent.runtime import wiring

#: The copy of a hash never changes.
HEADERS = {
    "Cache-Control": "private, max-age=86400, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}
#: What browsers play. SILK and AMR, QQ's own, are played by none.
PLAYED = frozenset({"audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4"})
#: Bytes of a copy that is played.
LARGEST = 2**25


def voice_response(kept: KeptFile) -> HttpResponse:
    """The copy, if it is sound that browsers play by its content. Raises Http404 else."""
    stored = wiring.build_file_store().find(kept.sha256)
    if stored is None or stored.mime not in PLAYED or stored.size > LARGEST:
        raise Http404(_("This copy cannot be played."))
    try:
        content = stored.path.read_bytes()
    except OSError as error:
        raise Http404(_("This copy cannot be played.")) from error
    return HttpResponse(content, content_type=stored.mime, headers=HEADERS)


def render_voice(kept: KeptFile) -> str:
    """A player; nothing is loaded before it is started."""
    source = reverse("admin:agent_keptfile_voice", args=(kept.pk,))
    return format_html(
        '<audio controls preload="none" src="{}" aria-label="{}"></audio>', source, _("voice")
    )
