"""HTTP tools from an OpenAPI 3 document. Pure; only the callers fetch anything.

A document is read and checked within bounds (``document``), outlined (``operations``), and
each operation that is chosen becomes a draft (``drafts``): the values of a row, the secrets
that it names (``security``), and what could not be kept of it, with the reason. References
are followed within the document alone, and schemas reduced to what a model can be given
(``schemas``).
"""
