"""HTTP tools from an OpenAPI 3 document. Pure; nothing is fetched but by whoever calls it.

A document is read and judged within bounds (``document``), outlined (``operations``), and
each operation that is chosen becomes a draft (``drafts``): the values of a row, the secrets
that it names (``security``), and what could not be kept of it, with the reason. References
are followed within the document alone (``references``), schemas reduced to what a model
can be given (``schemas``).
"""
