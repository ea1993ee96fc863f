"""What strangers' files and voices say, set down so that it cannot pass for anything else. Pure.

What is read in media follows the user's words under a label of its own: ``【图片内容】``,
``【语音内容】``, ``【文件内容】``. Words out of a file or a voice may hold such labels too;
theirs get other brackets, so that each label the model sees was put there by this
program.
"""

import re

_LABEL = re.compile(r"【(?=\s*(?:图片内容|语音内容|文件内容|以上是文件))")
_NO_NAME = re.compile(r"[\s【】“”]+")
NAME_LIMIT = 100


def voice(words: str) -> str:
    """What follows a user's words for a voice that says ``words``."""
    return f" 【语音内容】: {_harmless(words)}"


def file(words: str, name: str) -> str:
    """What follows a user's words for a file of that ``name`` in which ``words`` were read."""
    title = _NO_NAME.sub(" ", name).strip()[:NAME_LIMIT]
    return f" 【文件内容】: {_harmless(words)}\n【以上是文件“{title}”的内容】"


def _harmless(words: str) -> str:
    return _LABEL.sub("〔", words)
