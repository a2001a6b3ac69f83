"""Whether a value that was sent and received is what it was.

`==` is not the question: a tuple that has become a list is unequal, as it should be, but so is a
number that is not one, or an object of a class that compares by identity; and a frozen set that has
become a set is equal, as is a member of an enumeration that has become a text.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

_PLAIN = (str, int, bytes, bool, type(None))


def is_alike(one: Any, other: Any) -> bool:  # noqa: ANN401  # whatever an application keeps
    """Whether both are of the same types all through, with the same in them."""
    if type(one) is not type(other):
        return False
    if type(one) in _PLAIN:
        return bool(one == other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_alike(one[key], other[key]) for key in one)
    if isinstance(one, msgspec.Struct):
        names = one.__struct_fields__
    elif is_dataclass(one):
        names = tuple(each.name for each in fields(one))
    else:
        return bool(one == other) or (one != one and other != other)  # noqa: PLR0124  # not a number
    return all(is_alike(getattr(one, name), getattr(other, name)) for name in names)
