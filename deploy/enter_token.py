"""``enter_token.py CLIENT FOLDER``: URL and token of the server, in the configuration of a OneBot
client that runs beside it (compose.yaml). A file that is missing is made from ``clients/``; one
that is there is the operator's, and of it only the token of our connection is changed.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

URL = "ws://server:1234/ws/frostagent"
#: Of each client, below FOLDER: the file to make, and those it makes of it itself. LLBot has no
#: file for all accounts, so it needs the number.
FILES = {
    "napcat": ("templates/frost.json", "config/onebot11*.json"),
    "snowluma": ("config/onebot.json", "config/onebot_*.json"),
    "llbot": ("config_{QQ}.json", "config_*.json"),
}


def main(client: str, folder: Path) -> str | None:
    """Why it cannot be done, if so."""
    made, others = FILES[client]
    number = os.environ.get("QQ", "")
    if "{QQ}" in made and not number.isdecimal():
        return (
            f"{client} keeps a file for each account: set QQ in .env to the bot's QQ number / QQ 号"
        )
    made_file = folder / made.format(QQ=number)
    if not made_file.exists():
        made_file.parent.mkdir(parents=True, exist_ok=True)
        template = Path(__file__).parent / "clients" / f"{client}.json"
        made_file.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    for file in sorted({made_file, *folder.glob(others)}):
        enter(file)
    return None


def enter(file: Path) -> None:
    """Have ``file`` hold the token wherever it names our URL."""
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # the clients read JSON5, where people may have written it by hand
        sys.stderr.write(f"{file} is no plain JSON: enter the token there by hand\n")
        return
    after = with_token(before, read_token())
    if after != before:
        # In its place, as a new file: what a client has written belongs to that client's user.
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(after, ensure_ascii=False, indent=2), encoding="utf-8")
        draft.replace(file)
        sys.stdout.write(f"URL and token are entered in {file}\n")


def read_token() -> str:
    kept = Path(os.environ["FROST_DATA_DIR"], "onebot_access_token")
    return os.environ.get("ONEBOT_ACCESS_TOKEN") or kept.read_text(encoding="ascii").strip()


def with_token(value: Any, token: str) -> Any:
    """``value`` with ``token`` in each object whose ``url`` is ours."""
    if isinstance(value, list):
        return [with_token(each, token) for each in value]
    if not isinstance(value, dict):
        return value
    ours = value.get("url") == URL
    return {
        key: token if ours and key in ("token", "accessToken") else with_token(each, token)
        for key, each in value.items()
    }


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], Path(sys.argv[2])))
    except OSError as error:
        sys.exit(str(error))
