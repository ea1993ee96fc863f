"""How thinking is switched on, off and up: each provider has its own words for it."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any


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
) -> dict[str, Any]:
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


def _effort(effort: str, known: tuple[str, ...]) -> dict[str, Any]:
    """``reasoning_effort``, if there is one."""
    return {"reasoning_effort": _nearest(effort, known)} if effort else {}


def _type(enabled: bool) -> dict[str, Any]:
    """The switch of DeepSeek, 智谱, Moonshot and 方舟."""
    return {"thinking": {"type": "enabled" if enabled else "disabled"}}


def _nothing(_enabled: bool, _effort: str, _name: str) -> dict[str, Any]:
    """For a provider of which nothing is known."""
    return {}


def _deepseek(enabled: bool, effort: str, _name: str) -> dict[str, Any]:
    """api-docs.deepseek.com/guides/thinking_mode: low, high and max."""
    return {**_type(enabled), **(_effort(effort, ("low", "high", "max")) if enabled else {})}


def _qwen(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """help.aliyun.com deep-thinking: ``enable_thinking``; an effort from Qwen3.8 on."""
    if re.search(r"thinking|^qwq", name):  # these cannot but think, and refuse the switch
        return {}
    switch: dict[str, Any] = {"enable_thinking": enabled}
    if enabled and name.startswith("qwen3.8"):
        switch |= _effort(effort, ("low", "medium", "xhigh"))
    elif enabled and name.startswith(("glm-5", "deepseek-v4")):
        switch |= _effort(effort, ("high", "max"))
    return switch


def _glm(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """docs.bigmodel.cn thinking: GLM-5.3 always thinks; an effort from GLM-5.2 on."""
    if name.startswith("glm-5.3"):
        return _effort(effort if enabled else "low", ("low", "high", "max"))
    with_effort = enabled and name.startswith("glm-5.2")
    return {**_type(enabled), **(_effort(effort, ("high", "max")) if with_effort else {})}


def _kimi(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """platform.kimi.com: K3 always thinks and has an effort; K2.5 and K2.6 have the switch."""
    if name.startswith("kimi-k3"):
        return _effort(effort if enabled else "low", ("low", "high", "max"))
    return _type(enabled) if name.startswith(("kimi-k2.5", "kimi-k2.6")) else {}


def _siliconflow(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """docs.siliconflow.cn chat-completions: an effort for DeepSeek-V4-Flash only."""
    with_effort = enabled and name == "deepseek-v4-flash"
    efforts = _effort(effort, ("high", "max")) if with_effort else {}
    return {"enable_thinking": enabled, **efforts}


def _doubao(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """volcengine.com/docs/82379: an effort for its own models."""
    with_effort = enabled and name.startswith("doubao")
    known = ("minimal", "low", "medium", "high")
    return {**_type(enabled), **(_effort(effort, known) if with_effort else {})}


def _openai(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """developers.openai.com: ``none`` switches off, but not in every model."""
    if re.match(r"gpt-6-astra|gpt-6\.1-sol|gpt-5(-(mini|nano|20)|$)|o\d", name):
        known: tuple[str, ...] = ("low", "medium", "high")
        return _effort((effort or "medium") if enabled else "low", known)
    if not re.match(r"gpt-(5\.|[6-9])", name):
        return {}  # it does not think, and refuses to be asked
    known = ("low", "medium", "high", "xhigh", "max")
    return _effort(effort or "medium", known) if enabled else {"reasoning_effort": "none"}


def _gemini(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """ai.google.dev/gemini-api/docs/openai: Gemini 3 always thinks."""
    if not name.startswith("gemini"):
        return {}
    return _effort(effort if enabled else "low", ("low", "medium", "high"))


def _openrouter(enabled: bool, effort: str, name: str) -> dict[str, Any]:
    """openrouter.ai/docs: the object ``reasoning``; a model that must think refuses the off."""
    if not enabled:
        must = re.match(r"gemini-3|glm-5\.3|kimi-k3", name)
        return {"reasoning": {"effort": "low"} if must else {"enabled": False}}
    known = ("minimal", "low", "medium", "high", "xhigh")
    return {"reasoning": {"effort": _nearest(effort, known)} if effort else {"enabled": True}}


def _by_effort(enabled: bool, effort: str, _name: str) -> dict[str, Any]:
    """docs.ollama.com: high, medium, low and none. Thinking models think unless told not to."""
    if not enabled:
        return {"reasoning_effort": "none"}
    return _effort(effort, ("low", "medium", "high"))


def _template(enabled: bool, _effort: str, name: str) -> dict[str, Any]:
    """docs.vllm.ai reasoning_outputs: the variable is named by the model's template."""
    variable = "thinking" if re.match(r"granite|deepseek", name) else "enable_thinking"
    return {"chat_template_kwargs": {variable: enabled}}


_SWITCHES: dict[ThinkingStyle, Callable[[bool, str, str], dict[str, Any]]] = {
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
