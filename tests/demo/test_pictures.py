"""The pictures of the documents can be taken by the command that the Makefile calls."""

import subprocess
import sys


def test_the_command_begins_without_settings_of_anybody():
    code = "import tests.demo.pictures"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
