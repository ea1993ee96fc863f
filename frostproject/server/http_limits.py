"""What one HTTP request may bring along, judged by its head alone."""

from urllib.parse import unquote

from django.conf import settings

from frostproject.web.http import MAX_BODY

#: What a signed-in user may upload: a file of 100 MiB, and the form around it.
MAX_UPLOAD = 101 * 2**20
#: What anybody may who is outside ADMIN_NETWORKS: it is refused anyway, and need not be kept until
#: it has come in.
MAX_OUTSIDE = 64 * 2**10
#: Requests of these methods have no body.
BODILESS = (b"GET", b"HEAD")


def max_body_bytes(
    method: bytes,
    target: bytes,
    root: str,
    *,
    peer: str,
    is_upgrade: bool,
    cookies: dict[bytes, bytes],
) -> int:
    """Bytes that the body of a request to ``target`` may have; ``root`` is the URL prefix of this
    server.

    ``peer`` is the address at the other end, "" for a local socket.

    Session cookies are not checked here: a forged one only gives the larger limit.
    """
    if is_upgrade or method in BODILESS:
        return 0
    if peer not in settings.ADMIN_NETWORKS:
        return MAX_OUTSIDE
    path = unquote(target.partition(b"?")[0].decode("latin1")).removeprefix(root)
    has_session = bool(cookies.get(settings.SESSION_COOKIE_NAME.encode()))
    return MAX_UPLOAD if has_session and path.startswith("/admin/") else MAX_BODY
