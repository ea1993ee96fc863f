"""Pages that follow what happens: one WebSocket a page, which says what has changed and nothing
more. What it was is fetched by plain HTTP, and checked there."""
