"""``install_drawing``: what draws tables, formulae and code of answers, into this environment."""

import subprocess
import sys

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _

from agent.markdown.drawing_packages import LOCK

#: 60 MB are loaded, over a slow line too.
SECONDS = 1_800.0
#: Unlike what this program makes, packages are for whoever runs the server.
UMASK = 0o022


class Command(BaseCommand):
    help = (
        "Installs what draws tables, formulae and code of answers as pictures (100 MB), at the "
        "versions and hashes of requirements-drawing.lock. A running server uses it at once."
    )
    requires_system_checks = ()

    def handle(self, *arguments: object, **options: object) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        lock = str(settings.BASE_DIR / LOCK)
        try:
            done = subprocess.run(  # noqa: S603 - this Python and a file of this project
                [*pip, "--require-hashes", "-r", lock], timeout=SECONDS, umask=UMASK, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CommandError(_("pip took too long and was ended. Run it again.")) from error
        if done.returncode:
            raise CommandError(_("pip could not install it; what it said stands above."))
        said = _("Installed. Answers are drawn where manners say so, without a restart.")
        self.stdout.write(said, self.style.SUCCESS)
