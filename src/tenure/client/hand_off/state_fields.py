"""The fields of the class of a state, or of what a state holds: their names in Python, and the
names under which they are kept. Such a class is a Struct, a dataclass, of attrs or of Pydantic.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints

import msgspec

from tenure.errors import ConfigurationError

Kind: TypeAlias = Any
"""A class, of whatever library."""


class FormerNames(NamedTuple):
    """What `was` returns."""

    names: tuple[str, ...]


def was(*names: str) -> FormerNames:
    """The names under which a field of a state was kept before: `title: Annotated[str,
    was("name")] = ""`. The class must have raised its `version`, because processes of the release
    before know only the old name. Raises ConfigurationError for what is no name.
    """
    if not names or not all(isinstance(each, str) and each for each in names):
        raise ConfigurationError(f"was() takes the earlier names of a field, not {names!r:.200}")
    return FormerNames(names)


class KnownFields(NamedTuple):
    """What a class knows of its fields."""

    kept_as: Mapping[str, str]
    """The name under which each is kept, in their order."""
    known: frozenset[str]
    """All names that its decoder takes."""


@cache
def known_fields(kind: Kind) -> KnownFields | None:
    """The fields of a class that can be a state; None for other classes."""
    names = fields_of(kind)
    if not names and not hasattr(kind, "__struct_fields__"):
        return None
    if is_pydantic(kind):
        return _of_pydantic(kind)
    config = getattr(kind, "__struct_config__", None)
    kept_as = dict(zip(names, getattr(kind, "__struct_encode_fields__", names), strict=True))
    tag = () if config is None or config.tag_field is None else (config.tag_field,)
    return KnownFields(kept_as, frozenset((*kept_as.values(), *tag)))


def _of_pydantic(model: Kind) -> KnownFields:
    kept_as, known = {}, set()
    for name, each in model.model_fields.items():
        aliases = (each.serialization_alias, each.alias, each.validation_alias, name)
        texts = [it for it in aliases if isinstance(it, str)]
        kept_as[name] = texts[0]
        known.update(texts)
    return KnownFields(kept_as, frozenset(known))


def fields_of(kind: Kind) -> tuple[str, ...]:
    """The names of the fields of a Struct, a dataclass, an attrs class or a Pydantic model."""
    if is_pydantic(kind):
        return tuple(kind.model_fields)
    if attributes := getattr(kind, "__attrs_attrs__", ()):
        return tuple(each.name for each in attributes)
    return (*getattr(kind, "__struct_fields__", ()), *getattr(kind, "__dataclass_fields__", ()))


def is_pydantic(kind: object) -> bool:
    """Whether it is a Pydantic model, which nothing here imports."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_fields")


def is_strict(kind: Kind) -> bool:
    """Whether its decoder does more with a field that it does not know than to leave it out."""
    if is_pydantic(kind):
        return kind.model_config.get("extra") in {"allow", "forbid"}
    config = getattr(kind, "__struct_config__", None)
    return config is not None and config.forbid_unknown_fields


def former_names(kind: Kind) -> dict[str, tuple[str, ...]]:
    """The earlier names of fields, by the names under which these are kept now."""
    known = known_fields(kind)
    assert known is not None
    found = {known.kept_as[name]: each for name, each in _renamed(kind) if name in known.kept_as}
    if taken := known.known & {name for each in found.values() for name in each}:
        raise ConfigurationError(
            f"{kind.__name__} has a field {min(taken)!r}, and another one says that it was "
            f"{min(taken)!r}: give the new field another name"
        )
    for each in _held_by(kind, {kind}):
        for name, _ in _renamed(each):
            raise ConfigurationError(
                f"{each.__name__}.{name} has another name than it had, and was() is for the "
                f"fields of {kind.__name__} itself: rename it in an @upgrade"
            )
    return found


def _renamed(kind: Kind) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, metadata in _metadata(kind):
        for each in metadata:
            if isinstance(each, FormerNames):
                yield name, each.names


def _metadata(kind: Kind) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if is_pydantic(kind):
        yield from ((name, tuple(each.metadata)) for name, each in kind.model_fields.items())
        return
    for name, hint in get_type_hints(kind, include_extras=True).items():
        yield name, getattr(hint, "__metadata__", ())


def _held_by(kind: Kind, seen: set[Kind]) -> Iterator[Kind]:
    """The classes with fields of which the values in the fields of `kind` may be."""
    waiting: list[Any]
    if is_pydantic(kind):
        waiting = [each.annotation for each in kind.model_fields.values()]
    else:
        waiting = list(get_type_hints(kind).values())
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if isinstance(hint, type) and hint not in seen and known_fields(hint):
            seen.add(hint)
            yield hint
            yield from _held_by(hint, seen)


def is_by_place(kind: Kind) -> bool:
    """Whether its fields are kept by their places, without names."""
    return issubclass(kind, msgspec.Struct) and bool(kind.__struct_config__.array_like)
