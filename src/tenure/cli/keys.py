"""Keys on the command line: text, hexadecimal, or a number."""

import os
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from tenure.errors import ConfigurationError

KeyText: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True)]
Hex: TypeAlias = Annotated[bool, Parameter(negative="", help="The key is given in hexadecimal.")]
Int: TypeAlias = Annotated[
    bool, Parameter(negative="", help="The key is a number, a 64-bit key of a hashed pool.")
]


def key_parameters(key: str, *, hex: bool, int: bool) -> dict[str, str]:  # noqa: A002 - the options' names
    """The key as the API takes it. Raises ConfigurationError where it is given in two ways."""
    if hex and int:
        raise ConfigurationError("a key is given in one way: --hex or --int, not both")
    kind = "hex" if hex else "int" if int else "key"
    if int and not key.removeprefix("-").isdecimal():
        raise ConfigurationError(f"{key!r} is no number; leave --int out, or give a number")
    raw = os.fsencode(key)
    if kind == "key" and not _is_text(raw):
        kind, key = "hex", raw.hex()
    return {kind: key}


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
