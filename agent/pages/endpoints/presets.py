"""What the presets fill into the form of an endpoint, by the script or when it is saved."""

from typing import Any

from django.utils.translation import gettext as _

from agent.domain.endpoint import ThinkingSwitch
from agent.llm.providers.preset_models import PresetModel, Thinks
from agent.llm.providers.presets import PRESETS, Preset
from agent.llm.providers.thinking import EFFORTS, thinking_parameters

PRICES = ("price_input", "price_cached", "price_output")


def preset_choices() -> list[tuple[str, str]]:
    return [("", _("choose one")), *((one.id, str(one.title)) for one in PRESETS.values())]


def model_facts(model: PresetModel, preset: Preset) -> dict[str, Any]:
    """The values of the form's fields that are known of ``model``."""
    price = model.price
    return {
        "can_chat": model.answers,
        "can_tools": model.tools and model.answers,
        "can_see": model.sees,
        "can_think": model.thinks is not Thinks.NO,
        "can_transcribe": model.transcribes,
        "can_embed": model.embeds,
        "window": model.window,
        "streamed": preset.streamed and model.answers,
        "thinking": _first_switch(preset) if model.answers else "",
        "price_input": price and price.input,
        "price_cached": price and price.cached,
        "price_output": price and price.output,
        "currency": price.currency if price else "",
    }


def _first_switch(preset: Preset) -> str:
    if preset.starts_thinking is None:
        return ThinkingSwitch.OWN
    return ThinkingSwitch.ON if preset.starts_thinking else ThinkingSwitch.OFF


def fill_in(values: dict[str, Any], preset: Preset, *, is_new: bool) -> None:
    """Fill what is empty among ``values``, the cleaned fields of a form, with what ``preset`` knows
    of the model; of a new row the marks too, which cannot be empty."""
    known = preset.model(values.get("model") or "")
    if known is None:
        if is_new:
            values["thinking"] = values.get("thinking") or _first_switch(preset)
            values["streamed"] = values.get("streamed") or preset.streamed
        return
    facts = model_facts(known, preset)
    has_prices = any(values.get(name) is not None for name in PRICES)
    for name, value in facts.items():
        is_mark = isinstance(value, bool) or name == "thinking"
        if name in (*PRICES, "currency"):
            if not has_prices and facts["price_input"] is not None:
                values[name] = value
        elif is_new if is_mark else values.get(name) is None:
            values[name] = value


def describe_presets() -> dict[str, Any]:
    """The presets as JSON for the page's script."""
    return {
        one.id: {
            "url": one.base_url,
            "keyUrl": one.key_url,
            "needsKey": one.needs_key,
            "hint": str(one.hint),
            "title": str(one.title),
            "thinking": _first_switch(one),
            "streamed": one.streamed,
            "others": [
                {"title": str(other.title), "url": other.base_url, "keyUrl": other.key_url}
                for other in one.others
            ],
            "models": {model.name: _as_json(model_facts(model, one)) for model in one.models},
        }
        for one in PRESETS.values()
    }


def _as_json(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, bool | str | int) or value is None else str(value)
        for name, value in facts.items()
    }


def effort_warning(preset_id: str, effort: str, model: str) -> str:
    """What happens to an ``effort`` that the provider does not know; "" where it does, or where
    none is wished."""
    preset = PRESETS.get(preset_id)
    if not effort or preset is None:
        return ""
    sent = thinking_parameters(preset.thinking, True, effort, model)
    if effort in _texts(sent):
        words = _("The effort “%s” is not known here. It is sent as it is.")
        return "" if effort in EFFORTS else words % effort
    others = [text for text in _texts(sent) if text not in ("enabled", "disabled")]
    if others:
        words = _("This model does not know the effort “%(effort)s”: “%(sent)s” is sent instead.")
        return words % {"effort": effort, "sent": others[0]}
    return _("This provider takes no effort for this model: “%s” is not sent.") % effort


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    return [value] if isinstance(value, str) else []
