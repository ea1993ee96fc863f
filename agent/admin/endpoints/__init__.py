"""The pages of model endpoints."""
