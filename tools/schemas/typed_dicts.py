"""``typing.TypedDict`` for pydantic, which reads that of ``typing_extensions`` alone before Python
3.12."""

import sys
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typing_extensions


def convert_typed_dicts(annotation: Any) -> Any:
    """``annotation`` with each ``typing.TypedDict`` in it made anew; everything else as it is."""
    if sys.version_info >= (3, 12):
        return annotation
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _made_anew(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if not parts or origin is Literal:
        return annotation
    made = (
        (convert_typed_dicts(parts[0]), *parts[1:])
        if origin is Annotated
        else tuple(map(convert_typed_dicts, parts))
    )
    if all(new is old for new, old in zip(made, parts, strict=True)):
        return annotation
    if origin in (Union, UnionType):
        return Union[made]  # noqa: UP007 - the members are known at run time only
    if origin is Annotated:
        return Annotated[made]
    return annotation.copy_with(made) if hasattr(annotation, "copy_with") else origin[made]


def _made_anew(kind: Any) -> Any:
    fields = {
        name: convert_typed_dicts(_unqualified(hint))
        for name, hint in get_type_hints(kind, include_extras=True).items()
    }
    marked = {
        name: hint if name in kind.__required_keys__ else NotRequired[hint]
        for name, hint in fields.items()
    }
    make: Any = typing_extensions.TypedDict
    made = make(kind.__name__, marked)
    made.__doc__ = kind.__doc__
    return made


def _unqualified(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint
