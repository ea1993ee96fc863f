"""Providers of language models, ready to be chosen: where they are, what they offer, what is
peculiar about them.

Looked up in their documentation on :data:`agent.llm.providers.presets.CHECKED`. Nothing is
asked of any provider here.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class ThinkingStyle(StrEnum):
    """In whose words thinking is switched."""

    NONE = "none"
    """Not at all: nothing is sent."""
    DEEPSEEK = "deepseek"
    QWEN = "qwen"
    GLM = "glm"
    KIMI = "kimi"
    SILICONFLOW = "siliconflow"
    DOUBAO = "doubao"
    OPENAI = "openai"
    GEMINI = "gemini"
    OPENROUTER = "openrouter"
    EFFORT = "effort"
    """``reasoning_effort``, and nothing known of the models: Ollama, LM Studio."""
    TEMPLATE = "template"
    """A variable of the model's template: vLLM, llama.cpp, SGLang."""


EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""How hard a model may be told to think, from least to most. None takes all of them."""


def thinking_parameters(
    style: ThinkingStyle, enabled: bool | None, effort: str, model: str
) -> dict[str, object]:
    """What the body of a request to ``model`` says of thinking.

    ``enabled``: ``None`` leaves it to the model, and nothing is sent. A model that cannot but
    think is told to think as little as it can. ``effort`` is one of :data:`EFFORTS`, or empty for
    the model's own; where the model does not know it, the next one up is sent. Any other effort is
    sent as it is (providers invent them faster than they are listed here).
    """
    if enabled is None:
        return {}
    name = model.rpartition("/")[2].lower()
    return _SWITCHES[style](enabled, effort, name)


def _nearest(effort: str, known: tuple[str, ...]) -> str:
    """The least of the ``known`` efforts that is not below ``effort``, or the greatest."""
    if effort not in EFFORTS:
        return effort
    wanted = EFFORTS.index(effort)
    return next((each for each in known if EFFORTS.index(each) >= wanted), known[-1])


def _effort(effort: str, known: tuple[str, ...]) -> dict[str, object]:
    """``reasoning_effort``, if there is one."""
    return {"reasoning_effort": _nearest(effort, known)} if effort else {}


def _type(enabled: bool) -> dict[str, object]:
    """The switch of DeepSeek, 智谱, Moonshot and 方舟."""
    return {"thinking": {"type": "enabled" if enabled else "disabled"}}


def _nothing(_enabled: bool, _effort: str, _name: str) -> dict[str, object]:
    """For a provider of which nothing is known."""
    return {}


def _deepseek(enabled: bool, effort: str, _name: str) -> dict[str, object]:
    """api-docs.deepseek.com/guides/thinking_mode: low, high and max."""
    return {**_type(enabled), **(_effort(effort, ("low", "high", "max")) if enabled else {})}


def _qwen(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """help.aliyun.com deep-thinking: ``enable_thinking``; an effort from Qwen3.8 on."""
    if re.search(r"thinking|^qwq", name):  # these cannot but think, and refuse the switch
        return {}
    switch: dict[str, object] = {"enable_thinking": enabled}
    if enabled and name.startswith("qwen3.8"):
        switch |= _effort(effort, ("low", "medium", "xhigh"))
    elif enabled and name.startswith(("glm-5", "deepseek-v4")):
        switch |= _effort(effort, ("high", "max"))
    return switch


def _glm(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """docs.bigmodel.cn thinking: GLM-5.3 always thinks; an effort from GLM-5.2 on."""
    if name.startswith("glm-5.3"):
        return _effort(effort if enabled else "low", ("low", "high", "max"))
    with_effort = enabled and name.startswith("glm-5.2")
    return {**_type(enabled), **(_effort(effort, ("high", "max")) if with_effort else {})}


def _kimi(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """platform.kimi.com: K3 always thinks and has an effort; K2.5 and K2.6 have the switch."""
    if name.startswith("kimi-k3"):
        return _effort(effort if enabled else "low", ("low", "high", "max"))
    return _type(enabled) if name.startswith(("kimi-k2.5", "kimi-k2.6")) else {}


def _siliconflow(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """docs.siliconflow.cn chat-completions: an effort for DeepSeek-V4-Flash only."""
    with_effort = enabled and name == "deepseek-v4-flash"
    efforts = _effort(effort, ("high", "max")) if with_effort else {}
    return {"enable_thinking": enabled, **efforts}


def _doubao(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """volcengine.com/docs/82379: an effort for its own models."""
    with_effort = enabled and name.startswith("doubao")
    known = ("minimal", "low", "medium", "high")
    return {**_type(enabled), **(_effort(effort, known) if with_effort else {})}


def _openai(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """developers.openai.com: ``none`` switches off, but not in every model."""
    if re.match(r"gpt-6-astra|gpt-6\.1-sol|gpt-5(-(mini|nano|20)|$)|o\d", name):
        known: tuple[str, ...] = ("low", "medium", "high")
        return _effort((effort or "medium") if enabled else "low", known)
    if not re.match(r"gpt-(5\.|[6-9])", name):
        return {}  # it does not think, and refuses to be asked
    known = ("low", "medium", "high", "xhigh", "max")
    return _effort(effort or "medium", known) if enabled else {"reasoning_effort": "none"}


def _gemini(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """ai.google.dev/gemini-api/docs/openai: Gemini 3 always thinks."""
    if not name.startswith("gemini"):
        return {}
    return _effort(effort if enabled else "low", ("low", "medium", "high"))


def _openrouter(enabled: bool, effort: str, name: str) -> dict[str, object]:
    """openrouter.ai/docs: the object ``reasoning``; a model that must think refuses the off."""
    if not enabled:
        must = re.match(r"gemini-3|glm-5\.3|kimi-k3", name)
        return {"reasoning": {"effort": "low"} if must else {"enabled": False}}
    known = ("minimal", "low", "medium", "high", "xhigh")
    return {"reasoning": {"effort": _nearest(effort, known)} if effort else {"enabled": True}}


def _by_effort(enabled: bool, effort: str, _name: str) -> dict[str, object]:
    """docs.ollama.com: high, medium, low and none. Thinking models think unless told not to."""
    if not enabled:
        return {"reasoning_effort": "none"}
    return _effort(effort, ("low", "medium", "high"))


def _template(enabled: bool, _effort: str, name: str) -> dict[str, object]:
    """docs.vllm.ai reasoning_outputs: the variable is named by the model's template."""
    variable = "thinking" if re.match(r"granite|deepseek", name) else "enable_thinking"
    return {"chat_template_kwargs": {variable: enabled}}


_SWITCHES: dict[ThinkingStyle, Callable[[bool, str, str], dict[str, object]]] = {
    ThinkingStyle.NONE: _nothing,
    ThinkingStyle.DEEPSEEK: _deepseek,
    ThinkingStyle.QWEN: _qwen,
    ThinkingStyle.GLM: _glm,
    ThinkingStyle.KIMI: _kimi,
    ThinkingStyle.SILICONFLOW: _siliconflow,
    ThinkingStyle.DOUBAO: _doubao,
    ThinkingStyle.OPENAI: _openai,
    ThinkingStyle.GEMINI: _gemini,
    ThinkingStyle.OPENROUTER: _openrouter,
    ThinkingStyle.EFFORT: _by_effort,
    ThinkingStyle.TEMPLATE: _template,
}


# The models that are offered with a preset: what they can do, and what they cost.
#
# They stand in ``preset_models.json``, with the day on which they were looked up and the pages
# where; an operator may name any other model, and has the last word on prices.


class Thinks(StrEnum):
    """Whether a model thinks before it answers."""

    NO = "no"
    WHEN_ASKED = "when_asked"
    ALWAYS = "always"
    """Thinking can be made shorter, but not switched off."""


@dataclass(frozen=True)
class Price:
    """What a million tokens cost. ``cached``: of input that was read from the provider's cache."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    currency: str = "CNY"


@dataclass(frozen=True)
class PresetModel:
    """A model by the name its provider calls it. ``window``: tokens; ``price``: None if unknown.

    One that transcribes or embeds does not answer.
    """

    name: str
    tools: bool = True
    sees: bool = False
    thinks: Thinks = Thinks.WHEN_ASKED
    transcribes: bool = False
    embeds: bool = False
    window: int | None = None
    price: Price | None = None

    @property
    def answers(self) -> bool:
        """Whether it can hold a conversation."""
        return not (self.transcribes or self.embeds)


@functools.cache
def load_preset_models() -> Mapping[str, tuple[PresetModel, ...]]:
    """The models by the ids of their presets, read when they are first wanted."""
    text = Path(__file__).with_name("preset_models.json").read_text(encoding="utf-8")
    providers = json.loads(text)["providers"]
    return {preset: tuple(map(_model, known["models"])) for preset, known in providers.items()}


def _model(facts: dict[str, Any]) -> PresetModel:
    read = {
        name: Decimal(text) for name, text in facts.get("price", {}).items() if name != "currency"
    }
    price = Price(**read, currency=facts["price"]["currency"]) if read else None
    thinks = Thinks(facts.get("thinks", Thinks.WHEN_ASKED))
    return PresetModel(**{**facts, "thinks": thinks, "price": price})


@dataclass(frozen=True)
class OtherAddress:
    """Another address of the same provider. Keys of one address are refused by the other."""

    title: str | Promise
    base_url: str
    key_url: str


@dataclass(frozen=True)
class Preset:
    """A provider.

    ``base_url`` is empty when only the operator knows it; ``key_url`` is the page that gives a
    key. ``streamed``: whether requests should be streamed (a thinking model is refused otherwise).
    ``starts_thinking`` is the switch to begin with: off, for a chat wants quick answers (and OpenAI
    takes tools only so); ``None`` leaves it to a model of which nothing is known. ``hint`` is a
    sentence for who sets it up.
    """

    id: str
    title: str | Promise
    base_url: str
    key_url: str = ""
    needs_key: bool = True
    thinking: ThinkingStyle = ThinkingStyle.NONE
    starts_thinking: bool | None = False
    streamed: bool = False
    others: tuple[OtherAddress, ...] = ()
    hint: str | Promise = ""

    @property
    def models(self) -> tuple[PresetModel, ...]:
        """What is offered of it; none where that is the operator's own."""
        return load_preset_models().get(self.id, ())

    def model(self, name: str) -> PresetModel | None:
        """What is known of the model ``name``."""
        return next((model for model in self.models if model.name == name), None)


_CHINESE = (
    Preset(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        "https://platform.deepseek.com/api_keys",
        thinking=ThinkingStyle.DEEPSEEK,
        hint=_(
            "Prepaid: top up first. deepseek-flash sees pictures and uses tools. It thinks unless "
            "thinking is switched off, which makes it slower and dearer. On working days from 9 to "
            "12 and 14 to 18 o'clock in Beijing everything costs double."
        ),
    ),
    Preset(
        "dashscope",
        _("Alibaba Cloud Model Studio"),
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "https://bailian.console.aliyun.com/",
        thinking=ThinkingStyle.QWEN,
        streamed=True,
        others=(
            OtherAddress(
                _("International (Singapore)"),
                "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
                "https://modelstudio.console.alibabacloud.com/",
            ),
            OtherAddress(
                _("United States"),
                "https://dashscope-us.aliyuncs.com/compatible-mode/v1",
                "https://modelstudio.console.alibabacloud.com/",
            ),
        ),
        hint=_(
            "A key belongs to one region. Some models think only when their answers are streamed. "
            "Its speech recognition does not work here."
        ),
    ),
    Preset(
        "zhipu",
        _("Zhipu"),
        "https://open.bigmodel.cn/api/paas/v4",
        "https://bigmodel.cn/usercenter/proj-mgmt/apikeys",
        thinking=ThinkingStyle.GLM,
        others=(
            OtherAddress(
                _("International (Z.ai)"),
                "https://api.z.ai/api/paas/v4",
                "https://z.ai/manage-apikey/apikey-list",
            ),
        ),
        hint=_(
            "The models of GLM-5.3 always think; switched off, they think briefly. Voice messages "
            "of at most 30 seconds are transcribed."
        ),
    ),
    Preset(
        "moonshot",
        "Moonshot (Kimi)",
        "https://api.moonshot.cn/v1",
        "https://platform.moonshot.cn/console/api-keys",
        thinking=ThinkingStyle.KIMI,
        others=(
            OtherAddress(
                _("International"),
                "https://api.moonshot.ai/v1",
                "https://platform.moonshot.ai/console/api-keys",
            ),
        ),
        hint=_(
            "The models of K3 always think; switched off, they think briefly. They refuse any "
            "temperature but 1."
        ),
    ),
    Preset(
        "siliconflow",
        _("SiliconFlow"),
        "https://api.siliconflow.cn/v1",
        "https://cloud.siliconflow.cn/account/ak",
        thinking=ThinkingStyle.SILICONFLOW,
        others=(
            OtherAddress(
                _("International"),
                "https://api.siliconflow.com/v1",
                "https://cloud.siliconflow.com/account/ak",
            ),
        ),
        hint=_("Some models need an account whose real name is confirmed."),
    ),
    Preset(
        "volcengine",
        _("Volcengine Ark"),
        "https://ark.cn-beijing.volces.com/api/v3",
        "https://console.volcengine.com/ark",
        thinking=ThinkingStyle.DOUBAO,
        hint=_("Switch the model on in the console before you use it."),
    ),
)

_INTERNATIONAL = (
    Preset(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        "https://platform.openai.com/api-keys",
        thinking=ThinkingStyle.OPENAI,
        hint=_(
            "These models use tools here only while thinking is switched off. Not every country "
            "is served."
        ),
    ),
    Preset(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "https://aistudio.google.com/apikey",
        thinking=ThinkingStyle.GEMINI,
        hint=_(
            "These models always think; switched off, they think briefly. Not every country is "
            "served."
        ),
    ),
    Preset(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "https://openrouter.ai/settings/keys",
        thinking=ThinkingStyle.OPENROUTER,
        hint=_("One key for the models of many providers; the list of models names the prices."),
    ),
)

_LOCAL = (
    Preset(
        "ollama",
        "Ollama",
        "http://127.0.0.1:11434/v1",
        needs_key=False,
        starts_thinking=None,
        thinking=ThinkingStyle.EFFORT,
        hint=_(
            "Start it with OLLAMA_CONTEXT_LENGTH=64000: with less than 24 GiB of video memory its "
            "window has only 4,096 tokens, and what does not fit is cut off without a word."
        ),
    ),
    Preset(
        "lmstudio",
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        needs_key=False,
        starts_thinking=None,
        thinking=ThinkingStyle.EFFORT,
        hint=_(
            "Start the server on the Developer page (or: lms server start), and load the model "
            "with a longer context than the 4,096 tokens it has by default."
        ),
    ),
    Preset(
        "vllm",
        "vLLM",
        "http://127.0.0.1:8000/v1",
        needs_key=False,
        starts_thinking=None,
        thinking=ThinkingStyle.TEMPLATE,
        hint=_(
            "Tools need --enable-auto-tool-choice and the --tool-call-parser of the model; "
            "thinking is kept apart from the answer by --reasoning-parser."
        ),
    ),
    Preset(
        "llamacpp",
        "llama.cpp",
        "http://127.0.0.1:8080/v1",
        needs_key=False,
        starts_thinking=None,
        thinking=ThinkingStyle.TEMPLATE,
        hint=_("Tools need --jinja, pictures need --mmproj, and --ctx-size sets the window."),
    ),
    Preset("other", _("Another one"), "", needs_key=False, starts_thinking=None),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.id: preset for preset in (*_CHINESE, *_INTERNATIONAL, *_LOCAL)}
)
"""The presets by their ids, in the order in which they are offered."""
