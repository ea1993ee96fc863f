"""HTTP tools without code: a row in the admin defines the request, and the part of the answer that
the model gets.

Everything here is pure except ``provider`` (the rows), ``tool`` (one exchange with a server),
``cache`` and ``dry_run`` (an exchange, shown).

* A template is a text in which ``{name}`` stands for an argument and ``{secret:NAME}`` for a
  secret; ``{{`` and ``}}`` are plain braces (``templates``). A value is encoded for its place, so
  that it can never be more than a value (``substitution``, ``url_template``, ``body_template``,
  ``request_template``).
* Scheme, host, port and names (of query entries, headers, fields) contain no template. The finished
  URL is parsed again, and not requested when it leads elsewhere than the row's URL.
* What a row may hold is checked in one place, ``validation``: for forms, for the model's own
  checks, and for the provider, which offers no row that fails them.
* Secrets are put in last and taken out of everything that comes back
  (:mod:`tools.secrets.masked`).
* The answer is read with bounds, in a thread when it is large (``answers``, ``charset``,
  ``page_text``, ``jsonpath``).
"""
