"""What pages of every package share: words, facts, checks, and whose rows are shown."""
