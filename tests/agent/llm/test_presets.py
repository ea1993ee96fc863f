"""The presets are whole, and thinking is switched in each provider's own words."""

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.utils import translation

from agent.llm.providers.presets import (
    EFFORTS,
    PRESETS,
    OtherAddress,
    Preset,
    Price,
    ThinkingStyle,
    Thinks,
    thinking_parameters,
)

LOCAL = {"ollama", "lmstudio", "vllm", "llamacpp"}


def test_every_provider_of_the_list_is_there() -> None:
    assert list(PRESETS) == [
        "deepseek",
        "dashscope",
        "zhipu",
        "moonshot",
        "siliconflow",
        "volcengine",
        "openai",
        "gemini",
        "openrouter",
        "ollama",
        "lmstudio",
        "vllm",
        "llamacpp",
        "other",
    ]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.id)
def test_its_addresses_are_addresses(preset: Preset) -> None:
    assert PRESETS[preset.id] is preset
    addresses: tuple[Preset | OtherAddress, ...] = (preset, *preset.others)
    for address in addresses:
        if preset.id == "other":
            assert not address.base_url
            continue
        scheme = "http" if preset.id in LOCAL else "https"
        assert urlsplit(address.base_url).scheme == scheme
        assert not address.base_url.endswith(("/", "/chat/completions"))
        assert bool(address.key_url) is preset.needs_key
        if address.key_url:
            assert urlsplit(address.key_url).scheme == "https"


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.id)
def test_its_models_are_possible(preset: Preset) -> None:
    names = [model.name for model in preset.models]
    assert len(names) == len(set(names))
    assert not names or preset.models[0].tools
    for model in preset.models:
        assert re.fullmatch(r"[\w./~:-]+", model.name)
        assert preset.model(model.name) is model
        assert model.window is None or 32_000 <= model.window <= 2_000_000
        assert model.answers or not (model.tools or model.sees or model.thinks is not Thinks.NO)
        if model.price:
            check_price(model.price)
    assert preset.model("") is None


def check_price(price: Price) -> None:
    """That it is in a known currency, and that the cache is not dearer than the rest."""
    assert price.currency in ("CNY", "USD")
    assert price.input >= (price.cached or 0)
    assert price.output >= 0


def test_the_texts_can_be_read_in_every_language() -> None:
    for language in ("en", "zh-hans"):
        with translation.override(language):
            for preset in PRESETS.values():
                assert str(preset.title)
                assert preset.id == "other" or str(preset.hint)


@pytest.mark.parametrize("style", ThinkingStyle)
def test_a_switch_that_is_not_touched_sends_nothing(style: ThinkingStyle) -> None:
    assert thinking_parameters(style, None, "high", "deepseek-flash") == {}


OFF = {"thinking": {"type": "disabled"}}
ON = {"thinking": {"type": "enabled"}}
S = ThinkingStyle


@pytest.mark.parametrize(
    ("style", "model", "enabled", "effort", "sent"),
    [
        (S.NONE, "x", False, "high", {}),
        (S.DEEPSEEK, "deepseek-flash", False, "high", OFF),
        (S.DEEPSEEK, "deepseek-flash", True, "", ON),
        (S.DEEPSEEK, "deepseek-flash", True, "medium", {**ON, "reasoning_effort": "high"}),
        (S.QWEN, "qwen3.8-flash", False, "", {"enable_thinking": False}),
        (
            S.QWEN,
            "qwen3.8-flash",
            True,
            "high",
            {"enable_thinking": True, "reasoning_effort": "xhigh"},
        ),
        (S.QWEN, "qwen3.7-plus", True, "high", {"enable_thinking": True}),
        (S.QWEN, "qwen3-vl-thinking", False, "", {}),
        (S.GLM, "glm-5.3-flash", False, "max", {"reasoning_effort": "low"}),
        (S.GLM, "glm-5.3-flash", True, "", {}),
        (S.GLM, "glm-5.2", True, "low", {**ON, "reasoning_effort": "high"}),
        (S.GLM, "glm-4.7", False, "", OFF),
        (S.KIMI, "kimi-k3.1-pro", False, "", {"reasoning_effort": "low"}),
        (S.KIMI, "kimi-k3", True, "max", {"reasoning_effort": "max"}),
        (S.KIMI, "kimi-k2.6", False, "", OFF),
        (S.KIMI, "kimi-k2.7-code", False, "", {}),
        (
            S.SILICONFLOW,
            "deepseek-ai/DeepSeek-V4-Flash",
            True,
            "low",
            {"enable_thinking": True, "reasoning_effort": "high"},
        ),
        (S.SILICONFLOW, "zai-org/GLM-5.2", False, "low", {"enable_thinking": False}),
        (
            S.DOUBAO,
            "doubao-seed-2-1-lite-260915",
            True,
            "max",
            {**ON, "reasoning_effort": "high"},
        ),
        (S.DOUBAO, "deepseek-v4-flash-ga-260731", False, "", OFF),
        (S.OPENAI, "gpt-6-luna", False, "", {"reasoning_effort": "none"}),
        (S.OPENAI, "gpt-6.1-terra", True, "", {"reasoning_effort": "medium"}),
        (S.OPENAI, "gpt-6-astra", False, "", {"reasoning_effort": "low"}),
        (S.OPENAI, "gpt-5-mini", False, "", {"reasoning_effort": "low"}),
        (S.OPENAI, "gpt-4.1", False, "", {}),
        (S.GEMINI, "gemini-3.8-flash", False, "", {"reasoning_effort": "low"}),
        (S.GEMINI, "models/gemini-3.8-flash", True, "max", {"reasoning_effort": "high"}),
        (S.GEMINI, "gemma-3-27b-it", True, "high", {}),
        (
            S.OPENROUTER,
            "deepseek/deepseek-v4.1-flash",
            False,
            "",
            {"reasoning": {"enabled": False}},
        ),
        (S.OPENROUTER, "google/gemini-3.8-flash", False, "", {"reasoning": {"effort": "low"}}),
        (S.OPENROUTER, "openai/gpt-6.1-terra", True, "high", {"reasoning": {"effort": "high"}}),
        (S.EFFORT, "qwen3.6:27b", False, "", {"reasoning_effort": "none"}),
        (S.EFFORT, "gpt-oss:20b", True, "xhigh", {"reasoning_effort": "high"}),
        (S.EFFORT, "qwen3.6:27b", True, "", {}),
        (
            S.TEMPLATE,
            "Qwen/Qwen3.6-35B-A3B",
            False,
            "high",
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        (
            S.TEMPLATE,
            "deepseek-ai/DeepSeek-V3.1",
            True,
            "",
            {"chat_template_kwargs": {"thinking": True}},
        ),
    ],
)
def test_thinking_is_switched_in_the_words_of_the_provider(
    style: ThinkingStyle, model: str, enabled: bool, effort: str, sent: dict[str, Any]
) -> None:
    assert thinking_parameters(style, enabled, effort, model) == sent


@pytest.mark.parametrize("style", ThinkingStyle)
def test_every_effort_and_an_unknown_one_are_taken(style: ThinkingStyle) -> None:
    for effort in (*EFFORTS, "", "ultra"):
        for name in ("glm-5.3", "kimi-k3", "gpt-6-luna", "gemini-3", "qwen3.8-max", "", "/"):
            for enabled in (True, False):
                assert isinstance(thinking_parameters(style, enabled, effort, name), dict)


def test_thinking_of_a_preset_suits_its_models() -> None:
    for preset in PRESETS.values():
        for model in preset.models:
            sent = thinking_parameters(preset.thinking, False, "", model.name)
            if model.answers:
                assert sent, model.name
            if model.thinks is Thinks.ALWAYS:
                assert "low" in str(sent), model.name


def test_a_hosted_model_starts_without_thinking() -> None:
    assert {preset.id for preset in PRESETS.values() if preset.starts_thinking is None} == {
        *LOCAL,
        "other",
    }
