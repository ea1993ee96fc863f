"""The pages of personas."""
