"""Signs by which the chat templates of models end a turn or open another role. Pure.

Servers of local models (llama.cpp, vLLM, Ollama) put a request into one text, and many read such
signs wherever they stand in it. So in every text from outside, and in what a model said, their
brackets become ``〔`` and ``〕``; the word between them stays, for people who speak about them.

:data:`FAMILIES` says which signs there are. Most are a word between bars in brackets, and any such
word is changed, known or not. Formats that are plain words (``USER:``) have nothing to change.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class TemplateFamily:
    """Models whose chat templates use the same signs."""

    models: str
    source: str
    """Where the signs are told: the repository on huggingface.co whose ``chat_template`` has them,
    or a document."""
    signs: tuple[str, ...]


FAMILIES = (
    TemplateFamily(
        "ChatML: Qwen, Yi, InternLM 2, Hermes, SmolLM, Phi-4",
        "Qwen/Qwen2.5-7B-Instruct, Qwen/Qwen3-8B, 01-ai/Yi-6B-Chat, microsoft/phi-4",
        ("<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|endoftext|>", "<|vision_start|>"),
    ),
    TemplateFamily(
        "Tools of Hermes, Qwen and GLM, which stand in turns of the system or the user",
        "NousResearch/Hermes-3-Llama-3.1-8B, Qwen/Qwen2.5-7B-Instruct, zai-org/GLM-4.5",
        ("<tools>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
    ),
    TemplateFamily(
        "Qwen3-Coder, Step 3.5",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        ("<function=name>", "</function>", "<parameter=name>", "</parameter>"),
    ),
    TemplateFamily(
        "Llama 2, Mistral v1",
        "meta-llama/Llama-2-7b-chat-hf, mistralai/Mistral-7B-Instruct-v0.1",
        ("<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    ),
    TemplateFamily(
        "Mistral v3, v7, Tekken",
        "docs.mistral.ai: tokenization; mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        (
            *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
            *("[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CONTENT]"),
            *("[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"),
        ),
    ),
    TemplateFamily(
        "Llama 3, Llama 4",
        "llama.com/docs: model cards and prompt formats of Llama 3.1 and Llama 4",
        (
            *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
            *("<|eom_id|>", "<|python_tag|>", "<|header_start|>", "<|header_end|>", "<|eot|>"),
        ),
    ),
    TemplateFamily(
        "Gemma 2, Gemma 3",
        "ai.google.dev/gemma/docs: formatting; google/gemma-3-4b-it",
        ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"),
    ),
    TemplateFamily(
        "Gemma 4",
        "ai.google.dev/gemma/docs: prompt formatting of Gemma 4",
        (
            *("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool>", "<tool|>", '<|"|>'),
            *("<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>"),
        ),
    ),
    TemplateFamily(
        "FunctionGemma",
        "ai.google.dev/gemma/docs/functiongemma: formatting",
        (
            *("<start_function_declaration>", "<start_function_call>", "<end_function_call>"),
            *("<start_function_response>", "<end_function_response>"),
        ),
    ),
    TemplateFamily(
        "DeepSeek V2.5, V3, R1",
        "deepseek-ai/DeepSeek-V3, deepseek-ai/DeepSeek-R1",
        (
            *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
            *("<｜tool▁calls▁begin｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁output▁end｜>"),
        ),
    ),
    TemplateFamily(
        "DeepSeek V3.2",
        "deepseek-ai/DeepSeek-V3.2: encoding",
        ('<｜DSML｜invoke name="x">', "</｜DSML｜function_calls>"),
    ),
    TemplateFamily(
        "DeepSeek Coder, Alpaca, SOLAR",
        "deepseek-ai/deepseek-coder-6.7b-instruct, github.com/tatsu-lab/stanford_alpaca",
        (
            *("### Instruction:", "### Input:", "### Response:", "### System:", "### User:"),
            *("### Human:", "### Assistant:"),
        ),
    ),
    TemplateFamily(
        "gpt-oss (harmony)",
        "developers.openai.com/cookbook/articles/openai-harmony",
        ("<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>", "<|call|>"),
    ),
    TemplateFamily(
        "GLM-4, ChatGLM",
        "zai-org/glm-4-9b-chat-hf, zai-org/GLM-4.5",
        ("[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|observation|>"),
    ),
    TemplateFamily(
        "Kimi K2, Moonlight",
        "moonshotai/Kimi-K2-Instruct",
        ("<|im_system|>", "<|im_user|>", "<|im_middle|>", "<|tool_calls_section_begin|>"),
    ),
    TemplateFamily(
        "MiniMax M1, M2",
        "MiniMaxAI/MiniMax-M1-80k, MiniMaxAI/MiniMax-M2",
        (
            *("<beginning_of_sentence>", "<end_of_sentence>", "]~!b[", "]~b]", "[e~["),
            *("<minimax:tool_call>", "</minimax:tool_call>"),
        ),
    ),
    TemplateFamily(
        "Phi-3, Zephyr, TinyLlama, OLMo, Tülu, Falcon 3",
        "microsoft/Phi-3-mini-4k-instruct, HuggingFaceH4/zephyr-7b-beta, tiiuae/Falcon3-7B",
        ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"),
    ),
    TemplateFamily(
        "Granite",
        "ibm-granite/granite-3.3-8b-instruct",
        ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>"),
    ),
    TemplateFamily(
        "Command-R, Command-A, Aya",
        "CohereLabs/c4ai-command-r-v01, CohereLabs/c4ai-command-a-03-2025",
        (
            *("<BOS_TOKEN>", "<EOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>"),
            *("<|END_OF_TURN_TOKEN|>", "<|START_TOOL_RESULT|>", "<results>", "</results>"),
            *("<documents>", "</documents>"),
        ),
    ),
    TemplateFamily(
        "EXAONE",
        "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct",
        ("[|system|]", "[|user|]", "[|assistant|]", "[|endofturn|]"),
    ),
    TemplateFamily(
        "Nemotron",
        "nvidia/Nemotron-Mini-4B-Instruct, nvidia/NVIDIA-Nemotron-Nano-9B-v2",
        (
            *("<extra_id_0>", "<extra_id_1>", "<SPECIAL_10>", "<tool>", "</tool>", "<TOOLCALL>"),
            *("<AVAILABLE_TOOLS>", "<TOOL_RESPONSE>"),
        ),
    ),
    TemplateFamily(
        "Hunyuan",
        "tencent/Hunyuan-A13B-Instruct, tencent/Hunyuan-7B-Instruct",
        ("<|startoftext|>", "<|extra_0|>", "<｜hy_User｜>", "<tool_responses>", "<tool_calls>"),
    ),
    TemplateFamily(
        "Seed-OSS",
        "ByteDance-Seed/Seed-OSS-36B-Instruct",
        ("<seed:bos>", "<seed:eos>", "<seed:tool_call>", "</seed:tool_call>"),
    ),
    TemplateFamily(
        "Ling, Ring",
        "inclusionAI/Ling-mini-2.0",
        ("<role>", "</role>", "<|role_end|>"),
    ),
    TemplateFamily(
        "InternLM 1, Baichuan, TeleChat",
        "internlm/internlm-chat-7b, baichuan-inc/Baichuan2-7B-Chat, Tele-AI/telechat-7B",
        ("<eoh>", "<eoa>", "<reserved_106>", "<reserved_107>", "<_user>", "<_bot>", "<_end>"),
    ),
    TemplateFamily(
        "Places of pictures and sounds",
        "llama.cpp: tools/mtmd; llava-hf/llava-1.5-7b-hf, mistralai/Pixtral-12B-2409",
        ("<__media__>", "<image>", "[IMG]", "[IMG_BREAK]", "[IMG_END]"),
    ),
)
"""The signs that are known, by the models whose templates have them."""


def neutralize_signs(text: str) -> str:
    """``text`` with other brackets around each sign of a turn; the very same text without any."""
    if "###" in text:
        text = _HEADINGS.sub("＃＃＃", text)
    if "~" in text:
        for sign in _TILDES:
            text = text.replace(sign, f"〔{sign[1:-1]}〕")
    for beginning in _BEGINNINGS:  # most texts have none: this takes less than a look at each sign
        if beginning in text:
            plain = _SIGNS.sub(_changed, text)
            return text if plain == text else plain
    return text


def neutralize_end(text: str) -> str:
    """``text`` so that no sign begins at its end, where another text stands right behind it."""
    return _LOOSE.sub("〔", _LOOSE_HEADING.sub("＃", text))


def _changed(found: re.Match[str]) -> str:
    word, inside = found["word"], found["inside"]
    if word and not _is_known(_HIDDEN.sub("", word), is_square=found["square"] is not None):
        return found[0]
    return f"〔{inside}〕" if found["end"] else f"〔{inside}"


@lru_cache(maxsize=5_000)  # of HTML and the like each word comes many times
def _is_known(word: str, *, is_square: bool) -> bool:
    """Whether brackets around ``word`` make a sign."""
    plain = unicodedata.normalize("NFKC", word)
    if is_square:
        return plain in _PICTURES or plain.upper() in _SQUARE_WORDS
    return plain.lower() in _ANGLED_WORDS or _NUMBERED.fullmatch(plain.lower()) is not None


# --- What a sign looks like -----------------------------------------------------------

#: Inside of a character class: what may stand between two letters without being seen.
INVISIBLE = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u20d0-\u20ff\u2800\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\uffa0\ufff9-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_GAP = f"[{INVISIBLE}]*+"
_HIDDEN = re.compile(f"[{INVISIBLE}]")
_LOOSE = re.compile(r"[<＜﹤\[［\]](?=[^\s<＜﹤\[［>＞﹥\]］]*+\Z)")
_BEGINNINGS = ("<", "[", "&", "\\u", "\\x", "＜", "［", "﹤")
_BAR = (
    r"(?:[|｜￨❘∣│]|\\(?:u00|x)7[cC]|\\u[fF]{2}5[cC]"
    r"|&(?:vert|verbar|VerticalLine|#0*124|#[xX]0*7[cC])\b;?)"
)
_END = (
    r"(?:[>＞﹥\]］]|\\(?:u00|x)(?:3[eE]|5[dD])"
    r"|&(?:gt|GT|rsqb|rbrack|#0*(?:62|93)|#[xX]0*(?:3[eE]|5[dD]))\b;?)"
)
_LESS = r"(?:(?<=[<＜﹤])|(?<=\\)(?:u00|x)3[cC]|(?<=&)(?:lt|LT|#0*60|#[xX]0*3[cC])\b;?)"
_SQUARE = r"(?:(?<=[\[［])|(?<=\\)(?:u00|x)5[bB]|(?<=&)(?:lsqb|lbrack|#0*91|#[xX]0*5[bB])\b;?)"
#: Words between bars have any letters, and what templates join them with; Gemma 4 has a quotation
#: mark for a word, and words with one bar. Square brackets with one bar are regular expressions.
_BARRED = (
    rf"{_BAR}{_GAP}(?:[\w＿▁:.\"'\\/+-]{_GAP}){{1,64}}?"
    rf"(?:{_BAR}{_GAP}(?(square)(?={_END}))|(?(square)(?!))(?={_END}))"
    rf"|(?(square)(?!))(?:[\w＿]{_GAP}){{1,64}}{_BAR}{_GAP}(?={_END})"
)
_PLAIN = r"a-zA-Z0-9_:\uff10-\uff1a\uff21-\uff3a\uff3f\uff41-\uff5a"
_SIGNS = re.compile(
    rf"[<＜﹤\[［\\&](?:{_LESS}|(?P<square>{_SQUARE}))(?P<inside>{_GAP}(?:[/／]{_GAP})?(?:{_BARRED}"
    rf"|(?P<word>(?:[{_PLAIN}]{_GAP}){{1,64}})(?:(?={_END})|=)))(?P<end>{_END})?"
)

_EACH = tuple(sign for family in FAMILIES for sign in family.signs)
_TILDES = tuple(sign for sign in _EACH if "~" in sign)
_LOOSE_HEADING = re.compile(r"#(?=#{0,2} ?[a-zA-Z]{0,12} ?\Z)")
_HEADINGS = re.compile(
    rf"(?<!#)###(?= ?(?:{'|'.join(sign[4:-1] for sign in _EACH if sign[0] == '#')}) ?[:：])",
    re.IGNORECASE,
)
_PICTURES = ("IMG", "IMG_BREAK", "IMG_END")
"""Not in small letters, as forums write them."""
_SQUARE_WORDS = frozenset(
    sign.strip("[/]").upper() for sign in _EACH if sign[0] == "[" and sign[1:-1] not in _PICTURES
)
_ANGLED_WORDS = frozenset(sign.strip("</>").lower() for sign in _EACH if sign[0] == "<")
_NUMBERED = re.compile(
    r"(?:extra_id|special|reserved)_\d+|(?:start|end|beginning)_of_\w+|(?:start|end)_function_\w+"
)
