"""Made-up data of other programs."""

import base64
import json
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Any

KEY = "sk-made-up-1234567890"
CONFIG: dict[str, Any] = {
    "wake_prefix": ["/", "小霜"],
    "admins_id": ["10001"],
    "platform_settings": {
        "enable_id_white_list": True,
        "id_whitelist": ["20001", "qq:FriendMessage:10005"],
    },
    "provider_sources": [
        {
            "id": "deepseek",
            "type": "openai_chat_completion",
            "enable": True,
            "key": [KEY],
            "api_base": "https://api.deepseek.com/v1",
            "timeout": 120,
        }
    ],
    "provider": [
        {"id": "old", "provider_source_id": "deepseek", "model": "m-1", "enable": False},
        {"id": "ds", "provider_source_id": "deepseek", "model": "deepseek-chat", "enable": True},
        {"id": "claude", "type": "anthropic_chat_completion", "key": ["sk-x"]},
    ],
    "provider_settings": {"default_provider_id": "ds"},
}
SERVERS = {"mcpServers": {"web": {"url": "https://example.com/mcp", "active": False}}}
CARD: dict[str, Any] = {
    "spec": "chara_card_v2",
    "data": {
        "name": "霜降",
        "description": "{{char}}是一只狐狸。",
        "mes_example": "<START>\n{{user}}: 你好\n{{char}}: 你好呀",
        "creator_notes": "do not read",
        "character_book": {"entries": [{"keys": ["尾巴"], "content": "很软", "enabled": True}]},
    },
}


def write_database(file: Path, statements: str, *rows: tuple[str, tuple[Any, ...]]) -> Path:
    """A new database at ``file``."""
    database = sqlite3.connect(file)
    database.executescript(statements)
    for statement, values in rows:
        database.execute(statement, values)
    database.commit()
    database.close()
    return file


def write_astrbot(folder: Path) -> Path:
    """A data folder of AstrBot; its configuration begins with the mark of UTF-8."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(CONFIG, ensure_ascii=False)
    (folder / "cmd_config.json").write_text(text, encoding="utf-8-sig")
    (folder / "mcp_server.json").write_text(json.dumps(SERVERS), encoding="utf-8")
    persona = ("霜降", "你是霜降。", '["你好","嗷呜！"]', "[]", "oh")
    write_database(
        folder / "data_v4.db",
        "create table personas(persona_id, system_prompt, begin_dialogs, tools,"
        " custom_error_message)",
        ("insert into personas values(?,?,?,?,?)", persona),
    )
    return folder


def write_langbot(file: Path) -> Path:
    """A database of LangBot 4.9."""
    agent: dict[str, Any] = {
        "model": {"primary": "m1"},
        "prompt": [{"role": "system", "content": "你是小霜。"}],
    }
    agent["max-round"] = 10
    config = {
        "trigger": {
            "group-respond-rules": {"prefix": ["ai"], "random": 0.1},
            "ignore-rules": {"prefix": ["!"]},
            "access-control": {"mode": "blacklist", "blacklist": ["person_10009", "group_*"]},
        },
        "ai": {"runner": {"runner": "local-agent"}, "local-agent": agent},
    }
    provider = ("p1", "ds", "deepseek-chat-completions", "https://api.deepseek.com")
    return write_database(
        file,
        "create table model_providers(uuid, name, requester, base_url, api_keys);"
        "create table llm_models(uuid, name, provider_uuid, abilities, extra_args);"
        "create table legacy_pipelines(uuid, name, is_default, config);",
        ("insert into model_providers values(?,?,?,?,?)", (*provider, json.dumps([KEY]))),
        ("insert into llm_models values(?,?,?,?,?)", ("m1", "chat", "p1", '["vision"]', "{}")),
        ("insert into legacy_pipelines values(?,?,?,?)", ("u", "Pipe", 1, json.dumps(config))),
    )


def card_png(*, width: int = 1, height: int = 1, **cards: Any) -> bytes:
    """A picture with character cards in its text; it says that it is so wide and high."""
    texts = (
        _chunk(b"tEXt", key.encode() + b"\0" + base64.b64encode(json.dumps(card).encode()))
        for key, card in cards.items()
    )
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixel = _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(texts) + pixel + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
