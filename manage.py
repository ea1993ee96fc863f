#!/usr/bin/env python
"""Django's command line for this project."""

import gc
import os
import sys


def main() -> None:
    os.umask(0o077)  # what this program makes, and what it starts, is for its own user
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "frostproject.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    if sys.argv[1:2] == ["runserver"]:
        from frostproject.configuration import listening

        listening.exit_if_taken(
            listening.runserver_address(sys.argv[2:])
        )  # before the settings make anything
        gc.disable()  # what is loaded from here on stays; the server enables it again
    try:
        if sys.argv[1:2] == ["chat"]:  # a server does this itself at its start
            from django.conf import settings

            from frostproject.configuration import private_files

            private_files.restrict_folder(settings.DATA_DIR)
        execute_from_command_line(sys.argv)
    except (
        ImproperlyConfigured
    ) as error:  # a wrong setting: its name and what to mend, without a traceback
        sys.exit(str(error))


if __name__ == "__main__":
    main()
