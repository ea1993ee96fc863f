"""The pages of manners."""
