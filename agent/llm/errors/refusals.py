"""What an endpoint's refusal means, told by its wording.

Endpoints speak one protocol and refuse in a hundred ways: the same status says "no money" here
and "too fast" there. The table below holds the wordings, each with where it is from (looked up in
November 2026; the date of an older page is named).
"""

import json
import re
from collections.abc import Iterator
from enum import StrEnum

_READ = 64 * 2**10
"""Characters of an error that are looked through; its beginning says what is wrong."""
_COMPLAINTS = ("code", "type", "status", "message", "msg", "detail")
"""Where an answer without ``error`` and ``choices`` complains; its "text" may be a transcript."""
_DEPTH = 8
"""How deep into an error's JSON is looked: an error in an error of an error is 5 deep."""


def read_complaint(status: int, body: str) -> str:
    """The words of ``body`` that complain, as lines of ``name: value``."""
    values = _json_values(body)
    if not values:
        return "" if status < 300 else body[:_READ]
    if status < 300:
        values = [part for value in values for part in _errors_of(value)]
    return "\n".join(line for value in values for line in _lines("", value, 0))[:_READ]


def _json_values(body: str) -> list[object]:
    """The JSON of ``body``, or of the events of the stream it is."""
    whole = _json(body)
    if whole is not None:
        return [whole]
    events = (line[5:] for line in body.splitlines() if line.startswith("data:"))
    return [value for event in events if (value := _json(event)) is not None]


def _json(text: str) -> object:
    """The JSON value of ``text``; ``None`` when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _errors_of(value: object) -> Iterator[object]:
    """The errors in an answer that says it succeeded, without what the model said."""
    if isinstance(value, list):
        for part in value[:10]:
            yield from _errors_of(part)
    if not isinstance(value, dict):
        return
    if value.get("error"):
        yield {"error": value["error"]}
    choices = value.get("choices")
    if not isinstance(choices, list):
        yield {name: value.get(name) for name in _COMPLAINTS}
        return
    for choice in choices:
        if isinstance(choice, dict):
            yield {name: choice.get(name) for name in ("error", "finish_reason")}


def _lines(name: str, value: object, depth: int) -> Iterator[str]:
    """``value`` as lines of ``name: value``; of what was sent ("input") only its kind."""
    if depth > _DEPTH:
        return
    if name == "input":
        yield f"input: {'a list' if isinstance(value, list) else json.dumps(value)[:20]}"
    elif isinstance(value, dict):
        for inner, part in value.items():
            yield from _lines(str(inner), part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _lines(name, part, depth + 1)
    elif isinstance(value, str) and value[:1] in ("{", "[") and _json(value) is not None:
        yield from _lines(name, _json(value), depth + 1)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def texts_in(value: object) -> Iterator[str]:
    """All texts in a JSON ``value``, however deep, without the names of its entries."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value


class RefusalKind(StrEnum):
    """What a refusal asks of whoever sent the request."""

    WRONG_KEY = "wrong_key"
    WRONG_REGION = "wrong_region"
    NO_MONEY = "no_money"
    LIMITED = "limited"
    UNKNOWN_MODEL = "unknown_model"
    """There is no such model, or this account may not use it (or has not switched it on)."""
    WRONG_ADDRESS = "wrong_address"
    TOO_LONG = "too_long"
    """The messages do not fit in the model's window."""
    CONTENT_FILTER = "content_filter"
    NO_TOOLS = "no_tools"
    NO_TOOLS_WHILE_THINKING = "no_tools_while_thinking"
    NO_PICTURES = "no_pictures"
    NO_SYSTEM = "no_system"
    LATE_SYSTEM = "late_system"
    """A system message is allowed, but only as the first one."""
    NO_CONSECUTIVE_USER = "no_consecutive_user"
    NO_NULL_CONTENT = "no_null_content"
    NO_ARRAY_CONTENT = "no_array_content"
    ONLY_STREAMED = "only_streamed"
    NO_THINKING_UNLESS_STREAMED = "no_thinking_unless_streamed"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    """``max_tokens`` has to be named ``max_completion_tokens``."""
    NO_TEMPERATURE = "no_temperature"
    NO_THINKING_SWITCH = "no_thinking_switch"
    """Thinking cannot be switched like this: not off, not with this word, or not at all."""
    MISSING_REASONING = "missing_reasoning"
    """The reasoning (or its signature) of an earlier answer was not sent back."""
    NO_EXTRAS = "no_extras"
    """What the model said beside content and calls may not be sent back."""
    DOWN = "down"
    OTHER = "other"


_SWITCH = (
    r"(?<![-\w/])"
    r"(reasoning(_effort)?|(enable_)?thinking|chat_template_kwargs)"
    r"(?![-\w])"
)
"""A parameter that switches thinking; not a model that is named for it."""

_ROWS: tuple[tuple[RefusalKind, str], ...] = (
    # -- what was not sent back ------------------------------------------------------------
    # DeepSeek guides/thinking_mode: "The `reasoning_content` in the thinking mode must be ..."
    (RefusalKind.MISSING_REASONING, r"reasoning_content.{0,40} must be passed back"),
    # Moonshot: "thinking is enabled but reasoning_content is missing in assistant tool call ..."
    (RefusalKind.MISSING_REASONING, r"reasoning_content is missing"),
    # Gemini docs/thought-signatures: "Function call is missing a thought_signature in ..."
    (RefusalKind.MISSING_REASONING, r"missing a `?thought_signature"),
    # -- what was sent back and may not be ------------------------------------------------------
    # Groq: "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' :
    # property 'reasoning' is unsupported)]"
    (RefusalKind.NO_EXTRAS, r"messages\.\d+.{0,200}property '\w+' is unsupported"),
    # Gemini: 'Unknown name "reasoning_content" at 'messages[1]': Cannot find field.'
    (RefusalKind.NO_EXTRAS, r"unknown name \W{0,2}\w+\W{0,2} at 'messages\["),
    # -- a request that no waiting makes smaller -----------------------------------------------
    # Groq (413) and OpenAI (429), issues of 2024 to 2026: "Request too large for model `...` on
    # tokens per minute (TPM): Limit 6000, Requested 10338, please reduce your message size"
    (RefusalKind.TOO_LONG, r"request (body )?too large for"),
    # -- money: before the limits, for many send it with 429 -----------------------------------
    # DeepSeek error_codes (402), SiliconFlow 30001 "your account balance is insufficient"
    (RefusalKind.NO_MONEY, r"insufficient[ _]balance|balance is (insufficient|not enough)"),
    # OpenAI error-codes (429), Moonshot docs/api/errors (403)
    (
        RefusalKind.NO_MONEY,
        r"insufficient_quota|exceeded_current_quota|exceeded your current quota",
    ),
    (RefusalKind.NO_MONEY, r"billing[ _]hard[ _]limit|credit balance is too low|payment required"),
    (RefusalKind.NO_MONEY, r"insufficient credits|requires more credits"),  # OpenRouter (402)
    # 百炼 error-code: `Arrearage`; 方舟 1299023 (2025-04): `AccountOverdueError`
    (RefusalKind.NO_MONEY, r"\barrearage\b|account is in good standing"),
    (RefusalKind.NO_MONEY, r"accountoverdue|overdue balance"),
    # 智谱 api-code: 1113 comes with HTTP 429
    (RefusalKind.NO_MONEY, r"^code: 1113$|余额不足|欠费|no resource package"),
    # -- the key, the region -------------------------------------------------------------------
    (RefusalKind.WRONG_REGION, r"unsupported_country|country, region, or territory not supported"),
    (RefusalKind.WRONG_REGION, r"user location is not supported"),  # Gemini (400)
    (RefusalKind.WRONG_KEY, r"invalid_api_key|incorrect[ _]api[ _]key|invalid_authentication"),
    (RefusalKind.WRONG_KEY, r"authentication fails|authentication_error"),  # DeepSeek (401)
    # Gemini: 400 with the reason API_KEY_INVALID
    (RefusalKind.WRONG_KEY, r"api_key_invalid|api key (not valid|expired)|invalid api.?key"),
    # 方舟: "The API key or AK/SK in the request is missing or invalid."
    (RefusalKind.WRONG_KEY, r"api key or ak/sk|no auth credentials"),
    (RefusalKind.WRONG_KEY, r"^code: 100[0-5]$|^\"?invalid token\"?$"),  # 智谱; SiliconFlow (401)
    # -- thinking ------------------------------------------------------------------------------
    # 百炼 error-code: "parameter.enable_thinking must be set to false for non-streaming calls",
    # "parameter.enable_thinking only support stream call"; ModelScope: "enable thinking can not
    # be support when `stream=False`."
    (
        RefusalKind.NO_THINKING_UNLESS_STREAMED,
        r"enable.thinking.{0,40}(non-streaming|only support stream|stream=false)",
    ),
    # OpenAI (GPT-5.4 and later): "Function tools with reasoning_effort are not supported for ..."
    (RefusalKind.NO_TOOLS_WHILE_THINKING, r"function tools with reasoning_effort"),
    # Ollama: "... does not support thinking", 'think value "medium" is not supported for ...'
    (
        RefusalKind.NO_THINKING_SWITCH,
        r"does not support thinking|think value .{1,20} not supported",
    ),
    # Gemini: "The model does not support setting thinking_budget to 0."
    (RefusalKind.NO_THINKING_SWITCH, r"thinking.?budget (parameter must|to 0)"),
    # OpenAI: "Unsupported value: 'reasoning_effort' does not support 'none' with this model."
    (
        RefusalKind.NO_THINKING_SWITCH,
        r"(unsupported|unrecognized|unknown|invalid|extra)\b.{0,60}" + _SWITCH,
    ),
    (
        RefusalKind.NO_THINKING_SWITCH,
        _SWITCH + r".{0,60}(not supported|unsupported|not allowed|cannot be disabled|invalid)",
    ),
    # pydantic, of a name that it does not know; the lines name the field and the complaint
    (RefusalKind.NO_THINKING_SWITCH, _SWITCH + r"\s+msg: extra inputs are not permitted"),
    (RefusalKind.NO_THINKING_SWITCH, r"reasoning is mandatory"),  # OpenRouter (400)
    # -- streams -------------------------------------------------------------------------------
    # 百炼: "This model only support stream mode, please enable the stream parameter ...",
    # "current user api does not support http call."
    (RefusalKind.ONLY_STREAMED, r"only supports? stream|api does not support http call"),
    (RefusalKind.ONLY_STREAMED, r"stream['`\"]? must be (set to )?true|stream required"),  # OpenAI
    # -- tools, pictures -----------------------------------------------------------------------
    (RefusalKind.NO_TOOLS, r"does not support tools|no endpoints found that support tool"),
    # vLLM: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    (RefusalKind.NO_TOOLS, r"requires --enable-auto-tool-choice|tools? param requires --jinja"),
    # OpenAI (404, 400), github.com/UKGovernmentBEIS/inspect_ai/pull/1290; compatible servers that
    # name the parameter
    (RefusalKind.NO_TOOLS, r"\btools['`\"]? (is|are) not supported"),
    (
        RefusalKind.NO_TOOLS,
        r"(unrecognized|unknown|unsupported)\b.{0,40}\b(parameter|argument).{0,20}\btools\b",
    ),
    (RefusalKind.NO_TOOLS, r"\btools\b\W{1,3}(msg: )?extra inputs are not permitted"),
    # SiliconFlow, DeepInfra (405), 百炼, Gemini's Gemma
    (
        RefusalKind.NO_TOOLS,
        r"(function|tool)[ _]?(call(s|ing)?|choice|use) (is|are) not (supported|enabled)",
    ),
    (RefusalKind.NO_PICTURES, r"no endpoints found that support image"),  # OpenRouter (404)
    (RefusalKind.NO_PICTURES, r"image input is not supported"),  # llama.cpp (500)
    (RefusalKind.NO_PICTURES, r"not support image|not a multimodal model"),  # 方舟, vLLM
    (RefusalKind.NO_PICTURES, r"unknown variant `image_url`"),  # DeepSeek
    # -- the form of the messages --------------------------------------------------------------
    # llama.cpp and vLLM hand on what the model's template raises
    (RefusalKind.LATE_SYSTEM, r"system message must be (at|in) the (beginning|first)"),
    (RefusalKind.NO_SYSTEM, r"system (role|messages?|instruction) (is |are )?not supported"),
    (RefusalKind.NO_SYSTEM, r"developer instruction is not enabled"),  # Gemini's Gemma
    # OpenAI: "Unsupported value: 'messages[0].role' does not support 'system' with this model."
    (RefusalKind.NO_SYSTEM, r"does not support '(system|developer)'"),
    (RefusalKind.NO_SYSTEM, r"role '(system|developer)' is not supported"),  # Anthropic
    (RefusalKind.NO_CONSECUTIVE_USER, r"roles must alternate"),
    (
        RefusalKind.NO_NULL_CONTENT,
        r"expected a string, got null|invalid type: null, expected a str",
    ),
    (RefusalKind.NO_NULL_CONTENT, r"invalid message content type: <nil>"),  # Ollama
    # LM Studio: "Invalid 'content': 'content' field must be a string or an array of objects."
    (RefusalKind.NO_NULL_CONTENT, r"content' field must be a string or an array"),
    # pydantic (Mistral, vLLM's 422s): the list names the field, the complaint and what was sent
    (RefusalKind.NO_NULL_CONTENT, r"valid string\s+input: null"),
    (RefusalKind.NO_ARRAY_CONTENT, r"valid string\s+input: a list"),
    # llama-cpp-python (500) writes that list as Python does
    (RefusalKind.NO_NULL_CONTENT, r"'content'\), 'msg': '[^']{1,80}', 'input': None"),
    (RefusalKind.NO_ARRAY_CONTENT, r"'content'\), 'msg': '[^']{1,80}', 'input': \["),
    # DeepSeek: "messages[7]: invalid type: sequence, expected a string at line 1 column ..."
    (RefusalKind.NO_ARRAY_CONTENT, r"invalid type: sequence, expected a string"),
    (RefusalKind.NO_ARRAY_CONTENT, r"untagged enum ChatCompletionRequestContent"),  # older DeepSeek
    (RefusalKind.NO_ARRAY_CONTENT, r"expected a string, (but )?got an? (array|list)"),
    # -- parameters ----------------------------------------------------------------------------
    # OpenAI: "Unsupported parameter: 'max_tokens' is not supported ... Use 'max_completion_tokens'"
    (RefusalKind.MAX_COMPLETION_TOKENS, r"use [`'\"]?max_completion_tokens"),
    # OpenAI: "Unsupported value: 'temperature' does not support 0.2 with this model."
    (RefusalKind.NO_TEMPERATURE, r"unsupported (parameter|value): '(temperature|top_p)'"),
    # Moonshot: "invalid temperature: only 1 is allowed for this model"
    (RefusalKind.NO_TEMPERATURE, r"invalid temperature|temperature.{0,20} not supported"),
    # -- content -------------------------------------------------------------------------------
    (RefusalKind.CONTENT_FILTER, r"content exists risk"),  # DeepSeek (400)
    (RefusalKind.CONTENT_FILTER, r"data_?inspection_?failed|inappropriate content"),  # 百炼
    # Moonshot: "The request was rejected because it was considered high risk"
    (RefusalKind.CONTENT_FILTER, r"considered high risk|content_?(filter|policy_violation)"),
    (RefusalKind.CONTENT_FILTER, r"textriskdetection|sensitivecontentdetected"),  # 方舟
    (RefusalKind.CONTENT_FILTER, r"^code: 1301$"),  # 智谱
    # -- limits: before the length, for "too many tokens" is said of a minute too --------------
    # 智谱: 1302 to 1305, 1308 to 1312
    (RefusalKind.LIMITED, r"^code: (130[2-58]|131[0-2])$"),
    (RefusalKind.LIMITED, r"rate.?limit|too many requests|\bthrottl|tokens per min|resource_exh"),
    (RefusalKind.LIMITED, r"engine_overloaded|currently overloaded|capacity_exhausted"),
    # -- length ---------------------------------------------------------------------------------
    (RefusalKind.TOO_LONG, r"context[ _]length[ _]exceeded|exceed_context_size"),
    (
        RefusalKind.TOO_LONG,
        r"maximum context length",
    ),  # DeepSeek, OpenAI, vLLM, OpenRouter, Mistral
    (RefusalKind.TOO_LONG, r"exceeds? the (available context size|context (window|length))"),
    (
        RefusalKind.TOO_LONG,
        r"context window exceeds|model_context_window_exceeded",
    ),  # MiniMax, 智谱
    (RefusalKind.TOO_LONG, r"exceeded max context length"),  # Ollama
    (RefusalKind.TOO_LONG, r"range of input length should be"),  # 百炼
    (RefusalKind.TOO_LONG, r"max_seq_len"),  # SiliconFlow 20015
    (RefusalKind.TOO_LONG, r"exceeded model token limit|input token length too long"),  # Moonshot
    (RefusalKind.TOO_LONG, r"^code: 1261$|prompt exceeds max length|prompt ?超长"),  # 智谱
    (RefusalKind.TOO_LONG, r"exceed max message tokens"),  # 方舟
    (RefusalKind.TOO_LONG, r"exceeds the maximum number of tokens"),  # Gemini
    # llama.cpp and LM Studio: "n_keep: 13055>= n_ctx: 4096", "n_keep (15028) >= n_ctx (7424)"
    (RefusalKind.TOO_LONG, r"n_keep.{0,20}>=|when context the overflows"),
    (RefusalKind.TOO_LONG, r"(prompt|input) is too long|prompt too long"),  # Anthropic, Bedrock
    (RefusalKind.TOO_LONG, r"too long and exceeds limit"),  # vLLM
    (RefusalKind.TOO_LONG, r"maximum prompt length|request_too_large"),  # xAI, Anthropic
    (RefusalKind.TOO_LONG, r"reduce the length of the (messages|prompt)"),  # Groq
    # OpenRouter; Together; "prompt token count of 9000 exceeds the limit of 8192" (Copilot)
    (RefusalKind.TOO_LONG, r"maximum allowed input length|longer than the model's context"),
    (RefusalKind.TOO_LONG, r"token count of [\d,]+ exceeds|configured context size"),
    (RefusalKind.TOO_LONG, r"exceeds the model's maximum|too many tokens|token limit exceeded"),
    # 千帆: "tokens_too_long", "Prompt tokens too long"
    (RefusalKind.TOO_LONG, r"tokens[_ ]too[_ ]long|超过最大长度|上下文(长度|超)"),
    # llama-cpp-python: "Requested tokens (817) exceed context window of 512"
    (RefusalKind.TOO_LONG, r"exceed context window of"),
    (RefusalKind.TOO_LONG, r"max_tokens must be at least 1, got -"),  # vLLM
    # Hugging Face TGI: "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: ..."
    (RefusalKind.TOO_LONG, r"`inputs`.{0,60}must (be <=|have less than)"),
    # anybody else
    (RefusalKind.TOO_LONG, r"\b(prompt|inputs?|context)\b.{0,40}\b(too (long|large)|exceed)"),
    (RefusalKind.TOO_LONG, r"\btokens?\b.{0,40}\bexceed"),
    # -- the model ------------------------------------------------------------------------------
    (RefusalKind.UNKNOWN_MODEL, r"model[_ ]not[_ ](exist|found|open)|modelnotopen"),
    # Ollama: "model 'x' not found", SiliconFlow: "Model does not exist. Please check it carefully."
    (RefusalKind.UNKNOWN_MODEL, r"\bmodel\b.{0,100}(not found|does not exist)"),
    (RefusalKind.UNKNOWN_MODEL, r"invalidendpoint|models/\S{1,80} is not found"),  # 方舟, Gemini
    (RefusalKind.UNKNOWN_MODEL, r"not a valid model|no endpoints found for|no models? loaded"),
    (RefusalKind.UNKNOWN_MODEL, r"^code: 12(11|20)$|模型不存在|not found the model"),  # 智谱
    (RefusalKind.WRONG_ADDRESS, r"^code: 1222$|invalid url|404 page not found"),
)
_WORDINGS = tuple((kind, re.compile(p, re.IGNORECASE | re.MULTILINE)) for kind, p in _ROWS)

_BY_STATUS = {
    401: RefusalKind.WRONG_KEY,
    402: RefusalKind.NO_MONEY,
    403: RefusalKind.WRONG_KEY,
    404: RefusalKind.WRONG_ADDRESS,
    405: RefusalKind.WRONG_ADDRESS,
    408: RefusalKind.DOWN,
    413: RefusalKind.TOO_LONG,
    429: RefusalKind.LIMITED,
}

_WINDOWS = tuple(
    re.compile(p.replace("#", r"(\d[\d,]*)"), re.IGNORECASE)
    for p in (
        r"\bn_ctx\W{1,3}#",  # llama.cpp, LM Studio
        r"maximum context length (?:is|of) #",  # DeepSeek, OpenAI, OpenRouter, vLLM
        r"maximum context length \(#",  # vLLM
        r"# maximum context length",  # Mistral
        r"exceed context window of #",  # llama-cpp-python
        r"`max_new_tokens` must be <= #",  # Hugging Face TGI
        r"available context size \(#",  # llama.cpp
        r"context length of only #",  # LM Studio
        r"range of input length should be \[\d+, ?#\]",  # 百炼
        r"max_seq_len \(#",  # SiliconFlow
        r"model token limit: #",  # Moonshot
        r"maximum number of tokens allowed \(#",  # Gemini
        r"tokens > # maximum",  # Anthropic
        r"maximum prompt length is #",  # xAI
        r"maximum allowed input length of #",  # OpenRouter
        r"model's context length \(#",  # Together
        r"token count of [\d,]+ exceeds the limit of #",  # Copilot
        r"too long and exceeds limit of #",  # vLLM
        r"configured context size is #",
        r"\(TPM\): limit #",  # Groq, OpenAI: no more goes through in one request
        r"max size: # tokens",  # GitHub Models
    )
)


def classify_refusal(status: int, body: str) -> RefusalKind:
    """What the answer ``body`` with the HTTP ``status`` says is wrong.

    ``body`` is JSON, an event stream, plain text or HTML. A successful status may carry an error
    too; what the model itself said in it is not looked at. It never raises: what is not
    understood is :attr:`RefusalKind.OTHER`.
    """
    if body.lstrip()[:1] == "<":
        return _page_kind(status)
    complaint = read_complaint(status, body)
    for kind, wording in _WORDINGS:
        if wording.search(complaint):
            return kind
    if status >= 500:
        return RefusalKind.DOWN
    return _BY_STATUS.get(status, RefusalKind.OTHER)


def may_be_repeated(kind: RefusalKind, status: int, sent: object) -> bool:
    """Whether ``kind``, as which an answer with ``status`` was understood, may be no more than a
    repetition of what was ``sent``, any JSON: then one who writes to a bot would decide what its
    endpoint seems to say."""
    if _BY_STATUS.get(status) is kind:
        return False
    wordings = [wording for one, wording in _WORDINGS if one is kind]
    return any(wording.search(text) for text in texts_in(sent) for wording in wordings)


def find_window(body: str) -> int | None:
    """The tokens of the model's window, as an error that says "too long" names them.

    ``None``: it names no number (or only how much was sent).
    """
    complaint = read_complaint(400, body)
    for wording in _WINDOWS:
        found = wording.search(complaint)
        if found:
            digits = found[1].replace(",", "")
            return (int(digits) or None) if len(digits) < 12 else None
    return None


def _page_kind(status: int) -> RefusalKind:
    """What an HTML page means: its words are those of a web server or of a proxy."""
    if status >= 500:
        return RefusalKind.DOWN
    if status == 403:
        return RefusalKind.WRONG_ADDRESS
    return _BY_STATUS.get(status, RefusalKind.WRONG_ADDRESS)
