"""Keys on the command line: text, hexadecimal, or a number."""

import os
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from tenure.errors import ConfigurationError

KeyText: TypeAlias = Annotated[
    str, Parameter(allow_leading_hyphen=True, help="The key, as text unless an option says more.")
]


@Parameter(name="*")
@dataclass(frozen=True)
class KeyForm:
    """The form in which a key is given."""

    hex: Annotated[bool, Parameter(negative="", help="The key is in hexadecimal.")] = False
    int: Annotated[
        bool, Parameter(negative="", help="The key is a number, a 64-bit key of a hashed pool.")
    ] = False

    def parameters(self, key: str) -> dict[str, str]:
        """The key as the API takes it. Raises ConfigurationError where it is given in two ways."""
        if self.hex and self.int:
            raise ConfigurationError("give a key in one form: --hex or --int, not both")
        if self.int:
            if not key.removeprefix("-").isdecimal():
                raise ConfigurationError(f"{key!r} is not a number; leave --int out, or give one")
            return {"int": key}
        raw = os.fsencode(key)
        if self.hex:
            return {"hex": key}
        return {"key": key} if _is_text(raw) else {"hex": raw.hex()}


TEXT = KeyForm()


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
