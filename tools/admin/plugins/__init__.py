"""The pages of plugins."""
