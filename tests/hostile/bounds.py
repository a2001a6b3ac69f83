"""Whether a type says how large each of its fields may be, so that nothing larger is decoded."""

from collections.abc import Iterator

from msgspec import inspect

TEXTS = (inspect.StrType, inspect.BytesType, inspect.ByteArrayType, inspect.MemoryViewType)
LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
BOUNDED = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.FloatType,
    inspect.LiteralType,
    inspect.EnumType,
    inspect.RawType,  # not decoded: a part of the bytes, as they came
)


def unbounded(kind: object) -> list[str]:
    """The fields without a bound in `kind`, and in all that it has inside."""
    return sorted(set(_walk(inspect.type_info(kind), "itself", set())))


def _walk(found: inspect.Type, place: str, seen: set[object]) -> Iterator[str]:
    match found:
        case inspect.Metadata():
            yield from _walk(found.type, place, seen)
        case inspect.UnionType():
            for each in found.types:
                yield from _walk(each, place, seen)
        case inspect.TupleType():
            for each in found.item_types:
                yield from _walk(each, place, seen)
        case inspect.StructType() | inspect.NamedTupleType() | inspect.TypedDictType():
            if found.cls not in seen:
                seen.add(found.cls)
                for field in found.fields:
                    yield from _walk(field.type, f"{found.cls.__name__}.{field.name}", seen)
        case _:
            yield from _walk_plain(found, place, seen)


def _walk_plain(found: inspect.Type, place: str, seen: set[object]) -> Iterator[str]:
    if isinstance(found, (*TEXTS, *LISTS, inspect.DictType)):
        if found.max_length is None:
            yield place
        if isinstance(found, LISTS):
            yield from _walk(found.item_type, place, seen)
        elif isinstance(found, inspect.DictType):
            yield from _walk(found.key_type, place, seen)
            yield from _walk(found.value_type, place, seen)
    elif isinstance(found, inspect.IntType):
        if found.le is None and found.lt is None:
            yield place
    elif not isinstance(found, BOUNDED):
        yield place
