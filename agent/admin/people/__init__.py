"""Pages of the people who write to the bot."""
