"""Whether what servers have on record makes the requests again that the scripted model received,
byte for byte."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

PictureLoader = Callable[[str], Any]

models: set[str] = set()
"""The base URLs of scripted models."""
seen: set[bytes] = set()
"""Digests of all that they have received."""
#: Steps whose endpoint the environment names answered: others may have asked another server.
STEPS = """
SELECT step.run_id, step.number, step.phase, step.request, step.sent, step.model, step.parameters,
       step.response IS NOT NULL AS is_answered, offer.definitions,
       step.endpoint_id IS NULL OR endpoint.environment <> '' AS is_ours
FROM agent_step AS step
LEFT JOIN agent_tooloffer AS offer ON offer.id = step.offer_id
LEFT JOIN agent_modelendpoint AS endpoint ON endpoint.id = step.endpoint_id
ORDER BY step.run_id, step.number
"""


def note_received(body: bytes) -> None:
    seen.add(_digest(body))


def find_differing(data_dir: Path) -> list[str]:
    """The answered steps on record in ``data_dir`` that make no request that was received."""
    file = data_dir / "frostagent.sqlite3"
    if not file.exists():
        return []
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)
    connection.row_factory = sqlite3.Row
    try:
        rows = connection.execute(STEPS).fetchall()
    except sqlite3.DatabaseError:  # a test has broken it, or it was never made
        return []
    finally:
        connection.close()
    from agent.media.file_store import FileStore

    album = FileStore(data_dir / "received").shown
    return _differing(rows, album)


def _differing(rows: list[sqlite3.Row], album: PictureLoader) -> list[str]:
    differing: list[str] = []
    asked: list[dict[str, Any]] = []
    run = None
    for row in rows:
        if row["run_id"] != run:
            run, asked = row["run_id"], []
        added = json.loads(row["request"])
        if row["phase"] == "action":
            asked += added
        if not (row["parameters"] and row["is_answered"] and row["is_ours"]):
            continue
        messages = json.loads(json.loads(row["sent"])) if row["sent"] else None
        body = _body(row, messages or (asked if row["phase"] == "action" else added), album)
        if _digest(body) not in seen:
            differing.append(f"{run}.{row['number']}: {body[-2000:].decode(errors='replace')}")
    return differing


def _body(row: sqlite3.Row, messages: list[dict[str, Any]], album: PictureLoader) -> bytes:
    from agent.record.runs.requests import build_body

    texts = json.loads(row["definitions"]) if row["definitions"] else []
    tools, parameters = [json.loads(text) for text in texts], json.loads(row["parameters"])
    return build_body(row["model"], messages, tools, json.loads(parameters), album)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
