"""The pages of notes."""
