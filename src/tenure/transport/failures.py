"""The error that a call ended with, on its way to the caller.

An error of tenure arrives unchanged. So does any other exception whose class the caller has
imported too, made again from its arguments; otherwise an EntityError arrives that says what it was.
"""

import sys
from contextlib import suppress

import msgspec

from tenure import errors
from tenure.base.names import error_said
from tenure.errors import EntityError, NotOwner, TenureError
from tenure.protocol.entity.key_line import ARGUMENT_BYTES, NAME_CHARACTERS
from tenure.protocol.entity.messages import ADDRESS_CHARACTERS, TEXT_CHARACTERS, EntityFailure


def failure_of(seq: int, error: BaseException) -> EntityFailure:
    """The failure to send for `error`."""
    kind = type(error)
    try:
        arguments = msgspec.msgpack.encode(error.args)
    except (TypeError, ValueError, OverflowError, RecursionError):
        arguments = b""
    if len(arguments) > ARGUMENT_BYTES:
        arguments = b""
    return EntityFailure(
        seq,
        kind.__module__[:NAME_CHARACTERS],
        kind.__qualname__[:NAME_CHARACTERS],
        error_said(error)[:TEXT_CHARACTERS],
        arguments,
        _address_of(error),
    )


def _address_of(error: BaseException) -> str | None:
    address = error.address if isinstance(error, NotOwner) else None
    return None if address is None or len(address) > ADDRESS_CHARACTERS else address


def error_of(failure: EntityFailure) -> Exception:
    """The error to raise for `failure`."""
    if failure.module == errors.__name__:
        kind = getattr(errors, failure.name, None)
        if kind is NotOwner:
            return NotOwner(failure.text, address=failure.address)
        if isinstance(kind, type) and issubclass(kind, TenureError):
            with suppress(TypeError):  # a class that takes more than a text
                return kind(failure.text)
    kind = getattr(sys.modules.get(failure.module), failure.name, None)
    if failure.arguments and isinstance(kind, type) and issubclass(kind, Exception):
        with suppress(Exception):  # the class decides what it makes of the arguments
            made: object = kind(*msgspec.msgpack.decode(failure.arguments))
            if isinstance(made, Exception) and not isinstance(made, StopIteration):
                return made  # no future can have a StopIteration
    if failure.module == errors.__name__:
        return TenureError(failure.text)
    return EntityError(f"{failure.module}.{failure.name}: {failure.text}")
