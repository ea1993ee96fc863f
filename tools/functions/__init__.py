"""Function tools: any typed Python function, offered to the model as it stands."""

from tools.functions.function_tool import tool

__all__ = ["tool"]
