"""Refusals as providers word them: quoted from their documentation and from issues."""

import json

import pytest

from agent.llm.errors.refusals import RefusalKind, classify_refusal, find_window


def error(message: str, **others: object) -> str:
    """An error in the form of OpenAI."""
    return json.dumps({"error": {"message": message, **others}})


K = RefusalKind

REFUSALS = [
    # o1-mini and others of OpenAI
    (
        400,
        error("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        K.NO_SYSTEM,
    ),
    (404, error("tools is not supported in this model. For a list of supported ..."), K.NO_TOOLS),
    (400, error("Unsupported parameter: 'tools' is not supported with this model."), K.NO_TOOLS),
    (400, error("Unrecognized request argument supplied: tools"), K.NO_TOOLS),
    (422, error("tools: Extra inputs are not permitted"), K.NO_TOOLS),
    # what does not fit
    (500, error("Requested tokens (817) exceed context window of 512"), K.TOO_LONG),
    (400, error("max_tokens must be at least 1, got -200"), K.TOO_LONG),
    (
        422,
        error(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: "
            "5000 `inputs` tokens and 100 `max_new_tokens`"
        ),
        K.TOO_LONG,
    ),
    (400, error("The prompt is too large for the context"), K.TOO_LONG),
    (400, error("Total tokens exceed the limit"), K.TOO_LONG),
    (400, error("input length too long"), K.TOO_LONG),
    (429, error("You have exceeded your tokens per minute"), K.LIMITED),
    # DeepSeek
    (401, error("Authentication Fails, Your api key: ****fcc2 is invalid"), K.WRONG_KEY),
    (402, error("Insufficient Balance", code="invalid_request_error"), K.NO_MONEY),
    (400, error("Model Not Exist"), K.UNKNOWN_MODEL),
    (400, error("Content Exists Risk"), K.CONTENT_FILTER),
    (
        400,
        error(
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            type="invalid_request_error",
        ),
        K.MISSING_REASONING,
    ),
    (
        400,
        error(
            "Failed to deserialize the JSON body into the target type: messages[7]: invalid type: "
            "sequence, expected a string at line 1 column 80"
        ),
        K.NO_ARRAY_CONTENT,
    ),
    (
        400,
        error(
            "Failed to deserialize the JSON body into the target type: messages[7]: unknown "
            "variant `image_url`, expected `text` at line 1 column 9"
        ),
        K.NO_PICTURES,
    ),
    (
        400,
        error(
            "This model's maximum context length is 1048565 tokens. However, you requested 1551241 "
            "tokens (1543241 in the messages, 8000 in the completion). Please reduce the length of "
            "the messages or completion."
        ),
        K.TOO_LONG,
    ),
    # 百炼
    (400, error("Access denied, please make sure ...", code="Arrearage"), K.NO_MONEY),
    (
        400,
        error("parameter.enable_thinking must be set to false for non-streaming calls"),
        K.NO_THINKING_UNLESS_STREAMED,
    ),
    (
        400,
        error("parameter.enable_thinking only support stream call"),
        K.NO_THINKING_UNLESS_STREAMED,
    ),
    (
        400,
        error("enable thinking can not be support when `stream=False`."),
        K.NO_THINKING_UNLESS_STREAMED,
    ),
    (
        400,
        error(
            "This model only support stream mode, please enable the stream parameter to access "
            "the model."
        ),
        K.ONLY_STREAMED,
    ),
    (400, error("current user api does not support http call."), K.ONLY_STREAMED),
    (400, error("Range of input length should be [1, 98304]"), K.TOO_LONG),
    (400, error("Range of max_tokens should be [1, 8192]"), K.OTHER),
    (400, error("Input data may contain ...", code="data_inspection_failed"), K.CONTENT_FILTER),
    (
        400,
        error("<400> InternalError.Algo.InvalidParameter: The tool call is not supported."),
        K.NO_TOOLS,
    ),
    (
        400,
        error("The thinking_budget parameter must be a positive integer and not greater than 9"),
        K.NO_THINKING_SWITCH,
    ),
    (404, error("The model `qwen9` does not exist or you do not have access."), K.UNKNOWN_MODEL),
    # 智谱: no money comes as 429
    (429, error("余额不足或无可用资源包,请充值。", code="1113"), K.NO_MONEY),
    (429, error("Insufficient balance or no resource package. Please recharge."), K.NO_MONEY),
    (429, error("您的账户已达到速率限制", code="1302"), K.LIMITED),
    (400, error("模型不存在,请检查模型代码。", code="1211"), K.UNKNOWN_MODEL),
    (400, error("Prompt exceeds max length", code="1261"), K.TOO_LONG),
    (400, error("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"), K.CONTENT_FILTER),
    (401, error("身份验证失败。", code="1000"), K.WRONG_KEY),
    # Moonshot
    (401, error("Invalid Authentication", type="invalid_authentication_error"), K.WRONG_KEY),
    (403, error("Your account ...", type="exceeded_current_quota_error"), K.NO_MONEY),
    (429, error("The engine is currently overloaded", type="engine_overloaded_error"), K.LIMITED),
    (400, error("Input token length too long"), K.TOO_LONG),
    (
        400,
        error("The request was rejected because it was considered high risk"),
        K.CONTENT_FILTER,
    ),
    (400, error("invalid temperature: only 1 is allowed for this model"), K.NO_TEMPERATURE),
    (
        400,
        error(
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index 13"
        ),
        K.MISSING_REASONING,
    ),
    # SiliconFlow
    (401, '"Invalid token"', K.WRONG_KEY),
    (403, '{"code":30001,"message":"Sorry, your account balance is insufficient"}', K.NO_MONEY),
    (
        400,
        '{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}',
        K.UNKNOWN_MODEL,
    ),
    (
        400,
        '{"code":20015,"message":"length of prompt_tokens (57535) must be less than max_seq_len '
        '(32768).","data":null}',
        K.TOO_LONG,
    ),
    (400, '{"code":20041,"message":"Function call is not supported for this model."}', K.NO_TOOLS),
    (404, "404 page not found", K.WRONG_ADDRESS),
    # 方舟
    (401, error("The API key or AK/SK in the request is missing or invalid."), K.WRONG_KEY),
    (403, error("... has an overdue balance.", code="AccountOverdueError"), K.NO_MONEY),
    (
        404,
        error("Your account 21 has not activated the model x", code="ModelNotOpen"),
        K.UNKNOWN_MODEL,
    ),
    (
        404,
        error(
            "The model or endpoint doubao does not exist or you do not have access to it.",
            code="InvalidEndpointOrModel.NotFound",
        ),
        K.UNKNOWN_MODEL,
    ),
    (400, error("...", code="InputTextRiskDetection"), K.CONTENT_FILTER),
    (400, error("Model do not support image input"), K.NO_PICTURES),
    # OpenAI
    (401, error("Incorrect API key provided: sk-1.", code="invalid_api_key"), K.WRONG_KEY),
    (
        403,
        error("Country, region, or territory not supported", code="unsupported_country"),
        K.WRONG_REGION,
    ),
    (
        429,
        error(
            "You exceeded your current quota, please check your plan and billing details.",
            code="insufficient_quota",
        ),
        K.NO_MONEY,
    ),
    (429, error("Rate limit reached for requests", code="rate_limit_exceeded"), K.LIMITED),
    (
        429,
        error(
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit "
            "30000, Requested 35064. The input or output tokens must be reduced.",
            code="rate_limit_exceeded",
        ),
        K.TOO_LONG,
    ),
    (
        400,
        error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        K.MAX_COMPLETION_TOKENS,
    ),
    (
        400,
        error(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the "
            "default (1) value is supported.",
            param="temperature",
        ),
        K.NO_TEMPERATURE,
    ),
    (
        400,
        error("Unsupported parameter: 'temperature' is not supported with this model."),
        K.NO_TEMPERATURE,
    ),
    (
        400,
        error(
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in "
            "/v1/chat/completions. To use function tools, use /v1/responses or set "
            "reasoning_effort to 'none'."
        ),
        K.NO_TOOLS_WHILE_THINKING,
    ),
    (
        400,
        error("Unsupported value: 'reasoning_effort' does not support 'none' with this model."),
        K.NO_THINKING_SWITCH,
    ),
    (400, error("Unrecognized request argument supplied: enable_thinking"), K.NO_THINKING_SWITCH),
    (
        400,
        error("Invalid value for 'content': expected a string, got null."),
        K.NO_NULL_CONTENT,
    ),
    (400, error("Your input exceeds the context window of this model"), K.TOO_LONG),
    (400, '{"detail":"Stream must be set to true"}', K.ONLY_STREAMED),
    # Gemini: the error may come in a list
    (
        400,
        '[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.",'
        '"status":"INVALID_ARGUMENT"}}]',
        K.WRONG_KEY,
    ),
    (400, error("User location is not supported for the API use."), K.WRONG_REGION),
    (
        429,
        error("Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED"),
        K.LIMITED,
    ),
    (
        400,
        error(
            "The input token count (1196265) exceeds the maximum number of tokens allowed "
            "(1048575)."
        ),
        K.TOO_LONG,
    ),
    (
        400,
        error("Function call is missing a thought_signature in functionCall parts."),
        K.MISSING_REASONING,
    ),
    (
        400,
        error("The model does not support setting thinking_budget to 0."),
        K.NO_THINKING_SWITCH,
    ),
    (400, error("Function calling is not enabled for models/gemma-3-12b-it"), K.NO_TOOLS),
    (400, error("Developer instruction is not enabled for models/gemma-3-27b-it"), K.NO_SYSTEM),
    # OpenRouter
    (402, error("Insufficient credits. Add more ...", code=402), K.NO_MONEY),
    (404, error("No endpoints found that support tool use."), K.NO_TOOLS),
    (404, error("No endpoints found that support image input"), K.NO_PICTURES),
    (404, error("No endpoints found for x/y."), K.UNKNOWN_MODEL),
    (400, error("x/y is not a valid model ID"), K.UNKNOWN_MODEL),
    (
        400,
        error("Reasoning is mandatory for this endpoint and cannot be disabled."),
        K.NO_THINKING_SWITCH,
    ),
    (200, error("Provider returned error", code=502), K.OTHER),
    (
        200,
        error(
            "Provider returned error",
            metadata={"raw": json.dumps({"error": {"message": "Rate limit reached"}})},
        ),
        K.LIMITED,
    ),
    # Ollama
    (
        400,
        error("registry.ollama.ai/library/gemma3:4b does not support tools"),
        K.NO_TOOLS,
    ),
    (400, error('"gemma3:4b" does not support thinking'), K.NO_THINKING_SWITCH),
    (400, error('think value "medium" is not supported for this model'), K.NO_THINKING_SWITCH),
    (400, error("invalid message content type: <nil>"), K.NO_NULL_CONTENT),
    (404, error("model 'x' not found", type="not_found_error"), K.UNKNOWN_MODEL),
    (400, '{"error":"the input length exceeds the context length"}', K.TOO_LONG),
    (400, error("prompt too long; exceeded max context length by 5 tokens"), K.TOO_LONG),
    # llama-cpp-python: what Python writes
    (
        500,
        error(
            "7 validation errors:\n {'type': 'string_type', 'loc': ('body', 'messages', 1, 'X', "
            "'content'), 'msg': 'Input should be a valid string', 'input': None}"
        ),
        K.NO_NULL_CONTENT,
    ),
    # Groq
    (
        400,
        error(
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : "
            "property 'reasoning' is unsupported)]"
        ),
        K.NO_EXTRAS,
    ),
    # LM Studio
    (
        400,
        '{"error":"The number of tokens to keep from the initial prompt is greater than the '
        'context length (n_keep: 13055>= n_ctx: 4096)."}',
        K.TOO_LONG,
    ),
    (
        400,
        "{\"error\":\"Invalid 'content': 'content' field must be a string or an array of "
        'objects."}',
        K.NO_NULL_CONTENT,
    ),
    (404, error("No models loaded. Please load a model"), K.UNKNOWN_MODEL),
    # vLLM
    (
        400,
        '{"object":"error","message":"\\"auto\\" tool choice requires --enable-auto-tool-choice '
        'and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}',
        K.NO_TOOLS,
    ),
    (400, error("System role not supported"), K.NO_SYSTEM),
    (
        400,
        error("Conversation roles must alternate user/assistant/user/assistant/..."),
        K.NO_CONSECUTIVE_USER,
    ),
    (400, error("System message must be at the beginning."), K.LATE_SYSTEM),
    (400, error("x is not a multimodal model"), K.NO_PICTURES),
    (
        422,
        '{"detail":[{"type":"string_type","loc":["body","messages",1,"content"],"msg":"Input '
        'should be a valid string","input":null}]}',
        K.NO_NULL_CONTENT,
    ),
    (
        422,
        '{"detail":[{"loc":["body","messages",1,"content"],"msg":"Input should be a valid string",'
        '"input":[{"type":"text","text":"rate limit"}]}]}',
        K.NO_ARRAY_CONTENT,
    ),
    # llama.cpp
    (
        400,
        '{"error":{"code":400,"message":"the request exceeds the available context size. try '
        'increasing the context size or enable context shift","type":"exceed_context_size_error",'
        '"n_prompt_tokens":14429,"n_ctx":8192}}',
        K.TOO_LONG,
    ),
    (
        500,
        error(
            "image input is not supported - hint: if this is unexpected, you may need to provide "
            "the mmproj",
            code=500,
        ),
        K.NO_PICTURES,
    ),
    (500, error("tools param requires --jinja flag"), K.NO_TOOLS),
    (500, error("Jinja Exception: System message must be at the beginning."), K.LATE_SYSTEM),
    # Others
    (405, error("Tool calling is not supported for model: x"), K.NO_TOOLS),
    (413, error("Request too large for model `x` (TPM): Limit 6000, Requested 10338"), K.TOO_LONG),
    (400, error("prompt is too long: 213462 tokens > 200000 maximum"), K.TOO_LONG),
    (400, error("Throttling: too many tokens, please wait"), K.LIMITED),
    # A model named for its thinking; a parameter that is not known
    (404, error("The model `x/qwen3-vl-thinking` does not exist"), K.UNKNOWN_MODEL),
    (404, error("Unknown model: deepseek-reasoning, model not found"), K.UNKNOWN_MODEL),
    (400, error('Unknown name "enable_thinking": Cannot find field.'), K.NO_THINKING_SWITCH),
    (
        422,
        '{"detail":[{"type":"extra_forbidden","loc":["body","chat_template_kwargs"],"msg":"Extra '
        'inputs are not permitted","input":{}}]}',
        K.NO_THINKING_SWITCH,
    ),
    # Only the status
    (401, "", K.WRONG_KEY),
    (402, "", K.NO_MONEY),
    (403, '{"error":{}}', K.WRONG_KEY),
    (404, '{"detail":"Not Found"}', K.WRONG_ADDRESS),
    (413, "", K.TOO_LONG),
    (429, "", K.LIMITED),
    (500, error("internal"), K.DOWN),
    (400, error("something new"), K.OTHER),
    # Pages
    (200, "<!doctype html><title>Home</title>", K.WRONG_ADDRESS),
    (404, "<html>nginx</html>", K.WRONG_ADDRESS),
    (403, "<html>Attention Required! | Cloudflare</html>", K.WRONG_ADDRESS),
    (502, "<html>Bad Gateway, rate limit</html>", K.DOWN),
    (429, "<html>slow down</html>", K.LIMITED),
]


@pytest.mark.parametrize(("status", "body", "kind"), REFUSALS)
def test_each_wording_has_its_kind(status: int, body: str, kind: RefusalKind) -> None:
    assert classify_refusal(status, body) is kind


def test_what_the_model_says_is_no_refusal() -> None:
    answer = {
        "choices": [
            {"finish_reason": "stop", "message": {"content": "Your insufficient_quota is 402."}}
        ]
    }
    assert classify_refusal(200, json.dumps(answer)) is K.OTHER
    assert classify_refusal(200, f"data: {json.dumps(answer)}\n\ndata: [DONE]\n") is K.OTHER


def test_another_answer_is_no_refusal() -> None:
    models = {"object": "list", "data": [{"id": "x", "description": "no rate limit"}]}
    assert classify_refusal(200, json.dumps(models)) is K.OTHER
    assert classify_refusal(200, '{"text":"My insufficient balance."}') is K.OTHER
    assert classify_refusal(200, '{"code":30001,"message":"insufficient balance"}') is K.NO_MONEY


def test_an_error_within_a_stream_or_a_choice_is_found() -> None:
    event = error("Insufficient credits", code=402)
    assert classify_refusal(200, f": OPENROUTER\n\nevent: error\ndata: {event}\n") is K.NO_MONEY
    choice = {"choices": [{"error": {"message": "Rate limit reached"}, "message": {}}]}
    assert classify_refusal(200, json.dumps(choice)) is K.LIMITED
    cut = {"choices": [{"finish_reason": "model_context_window_exceeded"}]}
    assert classify_refusal(200, json.dumps(cut)) is K.TOO_LONG


@pytest.mark.parametrize(
    "body",
    ["", "{", "[" * 100_000, "null", "[]", "0", '"', "data:", "data: {", "\ud800", "\0", "{}" * 9],
)
def test_no_body_is_too_strange(body: str) -> None:
    assert classify_refusal(200, body) is K.OTHER
    assert classify_refusal(400, body) is K.OTHER
    assert find_window(body) is None


def test_a_long_body_takes_no_long_time() -> None:
    for word in ("invalid ", "thinking ", "model ", "roles must ", "token count of 1"):
        assert classify_refusal(400, word * 200_000) in set(K)


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("Requested tokens (817) exceed context window of 512", 512),
        ("This model's maximum context length is 1048565 tokens. However, you requested 1551241 "
         "tokens (1543241 in the messages, 8000 in the completion).", 1048565),
        ("This endpoint's maximum context length is 8192 tokens. However, you requested about "
         "9000 tokens", 8192),
        ("Input length (265330) exceeds model's maximum context length (262144).", 262144),
        ("Input prompt (35247 tokens) is too long and exceeds limit of 1000", 1000),
        ("Requested token count exceeds the model's maximum context length of 131,072 tokens",
         131072),
        ("Range of input length should be [1, 98304]", 98304),
        ("length of prompt_tokens (57535) must be less than max_seq_len (32768).", 32768),
        ("max_total_tokens (33802) must be less than or equal to max_seq_len (32768)", 32768),
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
         262144),
        ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
         1048575),
        ("request (9000 tokens) exceeds the available context size (8192 tokens)", 8192),
        ("... context length (n_keep: 13055>= n_ctx: 4096). Try to load ...", 4096),
        ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424),
        ("Trying to keep the first 111490 tokens when context the overflows. However, the model "
         "is loaded with context length of only 32768 tokens, which is not enough.", 32768),
        ("prompt is too long: 213462 tokens > 200000 maximum", 200000),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens",
         131072),
        ("exceeds the maximum allowed input length of 4096 tokens", 4096),
        ("The input (514881 tokens) is longer than the model's context length (262144 tokens).",
         262144),
        ("prompt token count of 9000 exceeds the limit of 8192", 8192),
        ("too large for model with 8192 maximum context length", 8192),
        ("prompt has 9000 tokens, but the configured context size is 8192 tokens", 8192),
    ],
)  # fmt: skip
def test_the_window_is_read_from_what_is_too_long(message: str, window: int) -> None:
    assert find_window(error(message)) == window
    assert classify_refusal(400, error(message)) is K.TOO_LONG


def test_a_window_may_stand_beside_the_message() -> None:
    assert (
        find_window('{"error":{"message":"too big","n_prompt_tokens":14429,"n_ctx":8192}}') == 8192
    )


@pytest.mark.parametrize(
    "message",
    [
        "Prompt exceeds max length",
        "prompt too long; exceeded max context length by 512 tokens",
        "maximum context length is 0 tokens",
        "maximum context length is " + "9" * 50,
    ],
)
def test_a_window_that_is_not_named_is_not_guessed(message: str) -> None:
    assert find_window(error(message)) is None
