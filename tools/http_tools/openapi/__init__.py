"""HTTP tools from an OpenAPI 3 document. Pure; only the callers fetch anything.

A document is read and checked within bounds, its references are followed within itself alone, and
its schemas reduced to what a model can be given (``document``). It is outlined, and each operation
that is chosen becomes a draft (``drafts``): the values of a row, the secrets that it names, and
what could not be kept of it, with the reason.
"""
