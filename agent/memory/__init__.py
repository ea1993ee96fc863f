"""Memory: notes of what was said once and should count later, and who may see which.

The rule that everything here obeys: a note belongs to one audience
(:mod:`agent.domain.notes`), and what a chat is shown is chosen by a query for its
audiences. Nothing is kept back by words in a prompt.
"""
