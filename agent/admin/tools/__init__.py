"""The pages of tools."""
