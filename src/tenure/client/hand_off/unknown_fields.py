"""The fields of a kept state that its class does not know: a newer version of the class keeps
them. Old and new processes run beside each other while a release is deployed, so what an old one
keeps must hold them, too.

A decoder leaves such fields out. So the state as it was kept is compared with what was decoded,
object by object, and the unknown fields of each object are put back when it is kept. An object is
the same one if it is the same in Python, wherever it is by now; or if it is of the same class and
in the same place, because a frozen object is changed by another one in its place. The items of a
list have no places: they move when another one is removed. So who replaces an item of a list
makes a new one, without the unknown fields of the old.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from tenure.client.hand_off.state_fields import Kind, KnownFields, known_fields

Plain: TypeAlias = Any
"""What was kept, as dicts, lists and plain values."""
Place: TypeAlias = tuple[object, ...] | None
"""The fields and keys that lead to an object; None in a list."""
SEQUENCES = (list, tuple)


class HeldObject(NamedTuple):
    """An object of the state, beside what was kept of it."""

    plain: Plain
    value: object
    place: Place
    fields: KnownFields


class UnknownPart(NamedTuple):
    """What was kept of an object, and its class does not know."""

    of: object
    """The object; it stays here so that no other gets its identity."""
    fields: Plain
    """By name; or what follows after the known fields, where they have places."""


class UnknownFields:
    """The unknown fields of one state. `plain` is what was kept, and `state` what was decoded."""

    def __init__(self, plain: Plain, state: object) -> None:
        self._by_object: dict[int, UnknownPart] = {}
        self._by_place: dict[tuple[object, ...], UnknownPart] = {}
        for each in _held(plain, state, ()):
            unknown = _unknown(each)
            if unknown:
                found = UnknownPart(each.value, unknown)
                self._by_object[id(each.value)] = found
                if each.place is not None:
                    self._by_place[each.place] = found

    def __bool__(self) -> bool:
        return bool(self._by_object)

    def put_back(self, plain: Plain, state: object) -> None:
        """Add them to `plain`, which is to be kept of `state`."""
        places = {}
        for each in list(_held(plain, state, ())):
            found = self._by_object.get(id(each.value))
            if found is None and each.place is not None:
                found = self._by_place.get(each.place)
                if found is not None and type(found.of) is not type(each.value):
                    found = None
            if found is None:
                continue
            if isinstance(each.plain, dict):
                each.plain.update(found.fields)
            else:
                each.plain.extend(found.fields)
            if each.place is not None:
                places[each.place] = found
        self._by_place = places  # what is put there after something was removed is a new one


def _held(plain: Plain, value: object, place: Place) -> Iterator[HeldObject]:
    """The objects of a state, those outside first."""
    kind: Kind = type(value)
    fields = known_fields(kind)
    if fields is not None:
        yield HeldObject(plain, value, place, fields)
        if isinstance(plain, dict):
            for name, kept_as in fields.kept_as.items():
                if kept_as in plain:
                    yield from _held(plain[kept_as], getattr(value, name), _in(place, name))
        elif isinstance(plain, list):
            # The tag of a Struct stands before its fields.
            first = len(fields.known) - len(fields.kept_as)
            for name, each in zip(fields.kept_as, plain[first:], strict=False):
                yield from _held(each, getattr(value, name), _in(place, name))
    elif isinstance(plain, dict) and isinstance(value, Mapping) and len(plain) == len(value):
        for each, (name, inside) in zip(plain.values(), value.items(), strict=True):
            yield from _held(each, inside, _in(place, name))
    elif isinstance(plain, list) and isinstance(value, SEQUENCES) and len(plain) == len(value):
        for each, inside in zip(plain, value, strict=True):
            yield from _held(each, inside, None)


def _in(place: Place, name: object) -> Place:
    return None if place is None else (*place, name)


def _unknown(held: HeldObject) -> Plain:
    plain, fields = held.plain, held.fields
    if isinstance(plain, dict):
        return {name: each for name, each in plain.items() if name not in fields.known}
    return plain[len(fields.known) :] if isinstance(plain, list) else None
