"""What the model and the operator are told of the loop's own tools, held word for word: the order
of the keys counts too, since endpoints cache requests by their bytes."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from agent.run.tool_results import PROVIDER_NAME
from agent.runtime.wiring import declared_tools
from tools.contract import ToolSpec
from tools.registry.catalogue import DefaultConfig

RECORDED = Path(__file__).with_name("builtin_declarations.json")


@pytest.fixture(autouse=True)
def declared_prompt(settings: Any) -> None:
    settings.UPSTREAM_ENDPOINT = ""


def described(spec: ToolSpec) -> dict[str, Any]:
    metadata = spec.metadata
    return spec.llm_definition() | {
        "output_schema": spec.output_schema,
        "provider": [spec.provider_name, spec.provider_type],
        "default_config": asdict(metadata.get("default_config", DefaultConfig())),
        "stage": metadata.get("builtin_stage", "action"),
        "traits": sorted(metadata.get("traits", ())),
        "on_timeout": metadata.get("on_timeout", ""),
        "checks_itself": callable(metadata.get("own_messages")),
    }


def test_own_tools_are_declared_as_they_were() -> None:
    own = [spec for spec in declared_tools() if spec.provider_name == PROVIDER_NAME]
    text = json.dumps([described(spec) for spec in own], ensure_ascii=False, indent=1)
    assert f"{text}\n" == RECORDED.read_text(encoding="utf-8")
