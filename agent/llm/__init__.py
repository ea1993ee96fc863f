"""Model endpoints: what is asked, what is answered, and whom to ask.

Each part imports only those before it: ``errors`` and ``providers``, ``requests``, ``spending``,
``answers``, ``client`` and ``endpoints``, ``probing``.
"""
