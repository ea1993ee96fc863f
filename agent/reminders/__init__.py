"""When something is due: words, rules and calendars. Pure."""
