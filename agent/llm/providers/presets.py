"""Providers of language models, ready to be chosen: where they are, what they offer, what is
peculiar about them.

Looked up in their documentation on :data:`agent.llm.providers.preset_models.CHECKED`. Nothing is
asked of any provider here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agent.llm.providers.preset_models import PresetModel, load_preset_models
from agent.llm.providers.thinking import ThinkingStyle, thinking_parameters

__all__ = (
    "PRESETS",
    "OtherAddress",
    "Preset",
    "PresetModel",
    "ThinkingStyle",
    "thinking_parameters",
)


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
    key. ``lists_models``: whether ``/models`` answers. ``streamed``: whether requests should be
    streamed (a thinking model is refused otherwise). ``starts_thinking`` is the switch to begin
    with: off, for a chat wants quick answers (and OpenAI takes tools only so); ``None`` leaves it
    to a model of which nothing is known. ``hint`` is a sentence for who sets it up.
    """

    id: str
    title: str | Promise
    base_url: str
    key_url: str = ""
    needs_key: bool = True
    thinking: ThinkingStyle = ThinkingStyle.NONE
    starts_thinking: bool | None = False
    streamed: bool = False
    lists_models: bool = True
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
