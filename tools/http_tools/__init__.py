"""HTTP tools without code: a row in the admin that says what to ask, and how the answer is told.

Everything here is pure but for ``store`` (the rows), ``tool`` (one exchange with a server),
``cache`` and ``rehearsal`` (an exchange, shown); the provider is :mod:`tools.http_tools.provider`.

* A template is a text in which ``{name}`` stands for an argument and ``{secret:NAME}`` for
  a secret; ``{{`` and ``}}`` are plain braces (``templates``). A value is encoded for where
  it stands, so that it is never more than a value there (``filling``, ``url_template``,
  ``body_template``, ``request_template``).
* No template stands in scheme, host, port or a name (of a query entry, header, field).
  What was made is read again, and not sent when it leads elsewhere than the row's URL.
* What a row may hold is said once, in ``faults``: by forms, by the model's own checks, and
  by the provider, which offers no row that has any.
* Secrets are put in last and taken out of everything that comes back (``secrets``).
* What came back is read with bounds, in a thread when it is large (``answers``, ``charset``,
  ``html_text``, ``picking``).
"""
