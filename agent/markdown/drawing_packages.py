"""Whether the packages that draw are installed. They take 100 MB, so an installation has them only
where somebody asked for them: ``manage.py install_drawing``."""

from importlib.util import find_spec

from django.utils.translation import gettext, gettext_noop

#: What :mod:`agent.markdown.drawing` needs of others, as ``requirements-drawing.txt`` names it.
PACKAGES = ("typst", "latex2mathml", "noto_cjk_sans_otc")
#: Their versions and hashes, in the project's folder.
LOCK = "requirements-drawing.lock"

MISSING = gettext_noop(
    "Tables, formulae and code are sent as text and not as pictures: what draws them is not "
    "installed."
)
ADVICE = gettext_noop(
    "Run once, without a restart: make drawing (or: python manage.py install_drawing)"
)


def are_installed() -> bool:
    """Looked up anew each time (a millisecond), so that it is true right after an installation."""
    return all(map(find_spec, PACKAGES))


def explain_missing() -> str:
    """For people: what becomes of pictures without them, and the command; "" where they are
    installed."""
    return "" if are_installed() else f"{gettext(MISSING)} {gettext(ADVICE)}"
