"""A message as people read it, from its recorded segments. Pure.

Clients write segments as they like, and people send what they like: nothing in them is believed to
be there, or to have a certain type.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from django.utils.translation import gettext_lazy as _

from tools.text.readable import drop_surrogates, escape_direction_chars

# The names of QQ's own faces by the numbers of ``face`` segments; they are QQ's, as listed in
# https://github.com/kyubotics/coolq-http-api/wiki/表情-CQ-码-ID-表 and told by clients since.

_NAMES = """
0 惊讶 1 撇嘴 2 色 3 发呆 4 得意 5 流泪 6 害羞 7 闭嘴 8 睡 9 大哭 10 尴尬 11 发怒 12 调皮 13 呲牙
14 微笑 15 难过 16 酷 18 抓狂 19 吐 20 偷笑 21 可爱 22 白眼 23 傲慢 24 饥饿 25 困 26 惊恐 27 流汗
28 憨笑 29 悠闲 30 奋斗 31 咒骂 32 疑问 33 嘘 34 晕 35 折磨 36 衰 37 骷髅 38 敲打 39 再见 41 发抖
42 爱情 43 跳跳 46 猪头 49 拥抱 53 蛋糕 54 闪电 55 炸弹 56 刀 57 足球 59 便便 60 咖啡 61 饭
63 玫瑰 64 凋谢 66 爱心 67 心碎 69 礼物 74 太阳 75 月亮 76 赞 77 踩 78 握手 79 胜利 85 飞吻
86 怄火 89 西瓜 96 冷汗 97 擦汗 98 抠鼻 99 鼓掌 100 糗大了 101 坏笑 102 左哼哼 103 右哼哼 104 哈欠
105 鄙视 106 委屈 107 快哭了 108 阴险 109 左亲亲 110 吓 111 可怜 112 菜刀 113 啤酒 114 篮球
115 乒乓 116 示爱 117 瓢虫 118 抱拳 119 勾引 120 拳头 121 差劲 122 爱你 123 NO 124 OK 125 转圈
126 磕头 127 回头 128 跳绳 129 挥手 130 激动 131 街舞 132 献吻 133 左太极 134 右太极 136 双喜
137 鞭炮 138 灯笼 140 K歌 144 喝彩 145 祈祷 146 爆筋 147 棒棒糖 148 喝奶 151 飞机 158 钞票 168 药
169 手枪 171 茶 172 眨眼睛 173 泪奔 174 无奈 175 卖萌 176 小纠结 177 喷血 178 斜眼笑 179 doge
180 惊喜 181 戳一戳 182 笑哭 183 我最美 184 河蟹 185 羊驼 187 幽灵 188 蛋 190 菊花 192 红包
193 大笑 194 不开心 197 冷漠 198 呃 199 好棒 200 拜托 201 点赞 202 无聊 203 托脸 204 吃 205 送花
206 害怕 207 花痴 208 小样儿 210 飙泪 211 我不看 212 托腮 214 啵啵 215 糊脸 216 拍头 217 扯一扯
218 舔一舔 219 蹭一蹭 220 拽炸天 221 顶呱呱 222 抱抱 223 暴击 224 开枪 225 撩一撩 226 拍桌
227 拍手 228 恭喜 229 干杯 230 嘲讽 231 哼 232 佛系 233 掐一掐 234 惊呆 235 颤抖 236 啃头 237 偷看
238 扇脸 239 原谅 240 喷脸 241 生日快乐 242 头撞击 243 甩头 244 扔狗 245 加油必胜 246 加油抱抱
247 口罩护体 260 搬砖中 261 忙到飞起 262 脑阔疼 263 沧桑 264 捂脸 265 辣眼睛 266 哦哟 267 头秃
268 问号脸 269 暗中观察 270 emm 271 吃瓜 272 呵呵哒 273 我酸了 274 太南了 276 辣椒酱 277 汪汪
278 汗 279 打脸 280 击掌 281 无眼笑 282 敬礼 283 狂笑 284 面无表情 285 摸鱼 286 魔鬼笑 287 哦
288 请 289 睁眼 290 敲开心 291 震惊 292 让我康康 293 摸锦鲤 294 期待 295 拿到红包 296 真好
297 拜谢 298 元宝 299 牛啊 300 胖三斤 301 好闪 302 左拜年 303 右拜年 304 红包包 305 右亲亲
306 牛气冲天 307 喵喵 308 求红包 309 谢红包 310 新年烟花 311 打call 312 变形 313 嗑到了
314 仔细分析 315 加油 316 我没事 317 菜汪 318 崇拜 319 比心 320 庆祝 321 老色痞 322 拒绝 323 嫌弃
324 吃糖 325 惊吓 326 生气 327 加一 328 错号 329 对号 330 完成 331 明白
"""
_WORDS = _NAMES.split()
FACE_NAMES = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))
#: Newer clients number emoji by their code points.
_EMOJI = range(0x1F300, 0x1FB00)


def face_words(number: str, told: str = "") -> str:
    """How a face reads: its emoji, the name that the client told, the known name, or its
    number."""
    if number.isascii() and number.isdigit() and len(number) < 8 and int(number) in _EMOJI:
        return chr(int(number))
    name = told.strip().strip("/[]") or FACE_NAMES.get(number, "")
    return f"[{name or number}]"


PieceKind = Literal["text", "mention", "face", "card", "note", "media", "forward"]

#: Segments of one message that are shown; messages of a forward; how deep forwards stand in each
#: other.
MOST_SEGMENTS, MOST_NODES, DEPTH = 200, 50, 3
#: Characters of a card that are read for its title; of one of its lines.
LONGEST_CARD, LONGEST_LINE = 2**16, 300

MEDIA = frozenset({"image", "record", "video", "file"})
_STICKERS = frozenset({"mface", "marketface"})
#: Segments that are shown as one word, with the first of the named values that says anything.
_LABELS: dict[str, tuple[str, ...]] = {
    "dice": ("result", "value"),
    "rps": ("result", "value"),
    "location": ("title", "content", "address"),
    "contact": ("id",),
    "music": ("title", "type"),
    "redbag": ("title",),
    "gift": ("title", "name"),
    "tts": ("text",),
    "poke": ("name",),
    "shake": (),
    "anonymous": (),
    "keyboard": (),
    "longmsg": (),
}
_XML_TITLE = re.compile(r"<title\b[^<>]*>\s*(?:<!\[CDATA\[)?([^<>\]]*)", re.IGNORECASE)
_XML_BRIEF = re.compile(r"""\bbrief=["']([^"'<>]*)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ForwardLine:
    """One message of a forward: who, and what in one line."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a message, in its order.

    ``text`` is what it says: the words, the name of who is mentioned, a face, the title of a card,
    the name of a file, what a note such as a dice came to. ``label`` is the type of a segment
    (``image``, ``record``, ``dice`` …), and ``detail`` what a card says below its title, or the
    file of a medium as it is on record.
    """

    kind: PieceKind
    text: str = ""
    label: str = ""
    detail: str = ""
    #: Of a medium: its position among the segments.
    index: int = 0
    lines: tuple[ForwardLine, ...] = ()


def render_segments(segments: object, names: Mapping[str, str]) -> list[Piece]:
    """The pieces of a message; ``names`` of people by their ids. Quotes are left out: they stand
    above a message. Words that follow each other are one piece."""
    pieces: list[Piece] = []
    for index, (kind, data) in enumerate(_read(segments)):
        piece = _piece(kind, data, index, names)
        if piece is None:
            continue
        if piece.kind == "text" and pieces and pieces[-1].kind == "text":
            pieces[-1] = Piece("text", pieces[-1].text + piece.text)
        else:
            pieces.append(piece)
    return pieces


def _read(segments: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for segment in segments[:MOST_SEGMENTS] if isinstance(segments, list) else ():
        if isinstance(segment, dict) and isinstance(kind := segment.get("type"), str):
            yield kind, _dict(segment.get("data"))


def _piece(
    kind: str, data: Mapping[str, object], index: int, names: Mapping[str, str]
) -> Piece | None:
    if kind in ("text", "markdown"):
        return Piece("text", _text(data.get("text", data.get("content"))))
    if kind == "reply":
        return None
    if kind == "at":
        who = _line(data.get("qq"))
        name = _line(data.get("name")).removeprefix("@") or names.get(who) or who
        return Piece("mention", "@全体成员" if who == "all" else f"@{name}")
    if kind == "face":
        told = _line(_dict(data.get("raw")).get("faceText"))
        return Piece("face", face_words(_line(data.get("id")), told))
    if kind in MEDIA:
        return _medium(kind, data, index)
    if kind in _STICKERS:
        return Piece("media", _line(data.get("summary")).strip("[]"), "image", index=index)
    if kind in ("forward", "node"):
        content = data if kind == "node" else data.get("content")
        return Piece("forward", label=kind, lines=tuple(_forwarded(content, names, DEPTH)))
    if kind in ("json", "miniapp", "rich", "xml", "share"):
        return _card(kind, data)
    return Piece("note", _first(data, _LABELS.get(kind, ("title", "text", "name"))), kind)


def _medium(kind: str, data: Mapping[str, object], index: int) -> Piece:
    file = _line(data.get("file"))
    if kind == "file":
        name = _first(data, ("name", "file_name")) or file.rpartition("/")[2]
        return Piece("media", name, kind, file, index)
    return Piece("media", _line(data.get("summary")).strip("[]"), kind, file, index)


def _forwarded(content: object, names: Mapping[str, str], depth: int) -> Iterator[ForwardLine]:
    """The messages of a forward, in whatever form a client tells it."""
    if isinstance(content, dict):
        content = [content]
    for node in content[:MOST_NODES] if isinstance(content, list) else ():
        if not isinstance(node, dict):
            continue
        data = _dict(node.get("data")) or node
        said = data.get("content", data.get("message"))
        sender = _dict(data.get("sender"))
        name = _first(data, ("nickname", "name")) or _first(sender, ("card", "nickname"))
        yield ForwardLine(name, plain_words(said, names, depth - 1))


def plain_words(segments: object, names: Mapping[str, str], depth: int = DEPTH) -> str:
    """A message as one line of text, such as a list or a quote shows it."""
    if isinstance(segments, str):
        return _line(segments)
    if depth <= 0:
        return "…"
    return _line("".join(map(_plain, render_segments(segments, names))))


def _plain(piece: Piece) -> str:
    if piece.kind in ("text", "face"):
        return piece.text
    if piece.kind == "mention":
        return f"{piece.text} "
    return f"[{piece.text or piece.label}]"


# --- Cards ----------------------------------------------------------------------


def _card(kind: str, data: Mapping[str, object]) -> Piece:
    """A card by its title, what it says below, and the host that it leads to."""
    if kind == "xml":
        text = str(data.get("data", ""))[:LONGEST_CARD]
        found = _XML_TITLE.search(text) or _XML_BRIEF.search(text)
        return Piece("card", _line(html.unescape(found[1])) if found else "", kind)
    if kind == "share":
        about = " ".join(filter(None, (_line(data.get("content")), _host(data.get("url")))))
        return Piece("card", _line(data.get("title")), kind, about)
    content = _parsed(data.get("data", data))
    views = [view for view in _dict(content.get("meta")).values() if isinstance(view, dict)]
    title = _first_of(views, ("title",)) or _first(content, ("title", "prompt", "desc", "text"))
    hosts = (_host(view.get(key)) for view in views for key in ("jumpUrl", "qqdocurl", "url"))
    host = next(filter(None, hosts), "")
    below = (_first_of(views, ("desc",)), _first_of(views, ("tag", "source_name")), host)
    return Piece("card", title, kind, " · ".join(one for one in below if one and one != title))


def _parsed(content: object) -> Mapping[str, Any]:
    if isinstance(content, str):
        try:
            content = json.loads(content) if len(content) <= LONGEST_CARD else None
        except (ValueError, RecursionError):
            return {}
    return content if isinstance(content, dict) else {}


def _first_of(views: Sequence[Mapping[str, object]], keys: tuple[str, ...]) -> str:
    return next((found for view in views if (found := _first(view, keys))), "")


def _host(address: object) -> str:
    text = _line(address)
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""


# --- Values ---------------------------------------------------------------------


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(data: Mapping[str, object], keys: Sequence[str]) -> str:
    return next((word for key in keys if (word := _line(data.get(key)))), "")


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return escape_direction_chars(drop_surrogates(str(value)))


def _line(value: object) -> str:
    text = " ".join(_text(value)[: 2 * LONGEST_LINE].split())
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"


#: Characters of the segments of one message that are read.
SEGMENT_CHARACTERS = 20_000
_SEGMENT_WORDS = {
    "dice": _("dice"),
    "rps": _("rock, paper, scissors"),
    "location": _("place"),
    "contact": _("contact"),
    "music": _("music"),
    "redbag": _("red packet"),
    "gift": _("gift"),
    "tts": _("read aloud"),
    "poke": _("poke"),
    "shake": _("shake"),
    "anonymous": _("anonymous"),
    "keyboard": _("buttons"),
    "longmsg": _("long message"),
    "json": _("card"),
    "xml": _("card"),
    "rich": _("card"),
    "miniapp": _("card"),
    "share": _("link"),
}


def segment_words(label: str) -> str:
    """What a type of segments is called; the type itself, where it has no name."""
    return str(_SEGMENT_WORDS.get(label, label))


def read_segments(recorded: str | None) -> object:
    """Segments from the beginning of their JSON; None where that is not all of it."""
    if not recorded or len(recorded) > SEGMENT_CHARACTERS:
        return None
    try:
        return json.loads(recorded)
    except ValueError:
        return None
