"""The models that are offered with a preset: what they can do, and what they cost.

Looked up on 2026-11-22 (:data:`CHECKED`); an operator may name any other model. Where a price
depends on the time of day or on the length of the prompt, the ordinary one is named. Prices in CNY
are those of the Chinese platform.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

CHECKED = date(2026, 11, 22)
"""When these facts were looked up. Prices change: the operator's own have the last word."""


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


def cny(input_: str, output: str, cached: str | None = None) -> Price:
    """A price in yuan for a million tokens."""
    return Price(Decimal(input_), Decimal(output), Decimal(cached) if cached else None)


def usd(input_: str, output: str, cached: str | None = None) -> Price:
    """A price in US dollars for a million tokens."""
    return Price(Decimal(input_), Decimal(output), Decimal(cached) if cached else None, "USD")


def embedding(name: str, price: Price | None = None) -> PresetModel:
    """A model that makes vectors."""
    return PresetModel(name, tools=False, thinks=Thinks.NO, embeds=True, price=price)


def transcription(name: str) -> PresetModel:
    """A model behind ``/audio/transcriptions``; it is paid by the minute."""
    return PresetModel(name, tools=False, thinks=Thinks.NO, transcribes=True)


_MILLION = 1_048_576

# api-docs.deepseek.com/zh-cn/quick_start/pricing, autumn 2026. These are the prices off-peak: on
# working days from 9 to 12 and 14 to 18 o'clock in Beijing everything costs double.
DEEPSEEK = (
    PresetModel("deepseek-flash", sees=True, window=_MILLION, price=cny("1", "4", "0.02")),
    PresetModel("deepseek-v4-pro", window=_MILLION, price=cny("4.5", "13.5", "0.15")),
)

# help.aliyun.com/zh/model-studio, alibabacloud.com deep-thinking (2026-10-29). The page with the
# prices in yuan was not found; these are of Singapore. Their speech models are not behind
# /audio/transcriptions.
DASHSCOPE = (
    PresetModel("qwen3.8-flash", sees=True, window=1_000_000, price=usd("0.15", "0.47")),
    PresetModel("qwen3.8-max", sees=True, window=1_000_000, price=usd("2", "6")),
    PresetModel("qwen3.7-plus", sees=True, window=1_000_000),
    embedding("text-embedding-v4"),
)

# docs.bigmodel.cn pricing.md and guide/capabilities/thinking.md, autumn 2026
ZHIPU = (
    PresetModel(
        "glm-5.3-flash",
        sees=True,
        thinks=Thinks.ALWAYS,
        window=1_000_000,
        price=cny("0.8", "2.8", "0.23"),
    ),
    PresetModel("glm-5.3", thinks=Thinks.ALWAYS, window=1_000_000, price=cny("8", "28", "2")),
    PresetModel("glm-5.2", window=1_000_000),
    embedding("embedding-3"),
    transcription("glm-asr-2512"),
)

# platform.kimi.com (kimi-k3.1-pro: 2026-10-23, its price in yuan was not found). The K2 models
# end with December 2026.
MOONSHOT = (
    PresetModel(
        "kimi-k3.1-pro",
        sees=True,
        thinks=Thinks.ALWAYS,
        window=_MILLION,
        price=usd("2", "10", "0.20"),
    ),
    PresetModel(
        "kimi-k3", sees=True, thinks=Thinks.ALWAYS, window=_MILLION, price=cny("20", "100", "2")
    ),
    PresetModel("kimi-k2.6", sees=True, window=262_144),
)

# models.dev, 2026-07-02, in dollars (nothing newer was found); docs.siliconflow.cn for the others
SILICONFLOW = (
    PresetModel(
        "deepseek-ai/DeepSeek-V4-Flash", window=_MILLION, price=usd("0.14", "0.28", "0.003")
    ),
    PresetModel(
        "deepseek-ai/DeepSeek-V4-Pro", window=1_049_000, price=usd("1.74", "3.48", "0.145")
    ),
    PresetModel("zai-org/GLM-5.2", window=1_049_000, price=usd("1.4", "4.4", "0.26")),
    PresetModel("Qwen/Qwen3.6-35B-A3B", sees=True, window=262_144, price=usd("0.23", "1.86")),
    embedding("BAAI/bge-m3"),
    embedding("Qwen/Qwen3-Embedding-8B"),
    transcription("FunAudioLLM/SenseVoiceSmall"),
    transcription("TeleAI/TeleSpeechASR"),
)

# volcengine.com, 2026-11-16; each has to be switched on in the console first
VOLCENGINE = (
    PresetModel("doubao-seed-2-1-lite-260915", sees=True, window=256_000, price=cny("0.8", "2.7")),
    PresetModel("doubao-seed-2-1-pro-260915", sees=True, window=256_000, price=cny("6", "30")),
    PresetModel("doubao-seed-2-1-turbo-260628", sees=True, window=256_000),
    PresetModel("deepseek-v4-flash-ga-260731", window=1_000_000),
)

# developers.openai.com, October and November 2026. gpt-6-astra and gpt-6.1-sol are not here: with
# tools they need /v1/responses. Above 272,000 tokens of input terra costs double.
OPENAI = (
    PresetModel("gpt-6-luna", sees=True, window=1_050_000, price=usd("0.10", "0.50", "0.01")),
    PresetModel("gpt-6.1-terra", sees=True, window=1_050_000, price=usd("1", "5", "0.05")),
    embedding("text-embedding-3-small"),
    transcription("gpt-transcribe"),
)

# ai.google.dev/gemini-api/docs, autumn 2026; gemini-3.8-flash costs double from 2027 on
GEMINI = (
    PresetModel(
        "gemini-3.8-flash",
        sees=True,
        thinks=Thinks.ALWAYS,
        window=_MILLION,
        price=usd("0.75", "3.75", "0.075"),
    ),
    PresetModel("gemini-3.5-flash-lite", sees=True, thinks=Thinks.ALWAYS, window=_MILLION),
    PresetModel(
        "gemini-3.1-flash-lite",
        sees=True,
        thinks=Thinks.ALWAYS,
        window=_MILLION,
        price=usd("0.25", "1.50", "0.03"),
    ),
    embedding("gemini-embedding-001", usd("0.15", "0")),
)

# openrouter.ai/models, autumn 2026; the list that /models gives has windows and prices
OPENROUTER = (
    PresetModel("deepseek/deepseek-v4.1-flash", sees=True, window=_MILLION),
    PresetModel("z-ai/glm-5.3-flash", sees=True, thinks=Thinks.ALWAYS, window=_MILLION),
    PresetModel("google/gemini-3.8-flash", sees=True, thinks=Thinks.ALWAYS, window=_MILLION),
    PresetModel("openai/gpt-6.1-terra", sees=True, window=1_050_000),
)
