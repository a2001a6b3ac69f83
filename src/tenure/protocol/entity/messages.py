"""What the members of a pool of entities say to each other, over one connection for each pair.

Either side asks: a caller the owner of a key, and an owner the process that has its sockets.
"""

from typing import TypeAlias

import msgspec

from tenure.protocol.entity.key_line import EntityCall

ARGUMENT_BYTES = 1 << 20
"""The arguments of a call, and its answer."""
MOST_CHAIN = 64
"""Calls into calls. Whatever is deeper goes round in a circle of ever new keys."""


class EntityAsk(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Carry out a call, and answer under this number."""

    seq: int
    call: EntityCall


class EntityReply(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """What a call came to."""

    seq: int
    data: bytes


class EntityFailure(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The error that a call ended with."""

    seq: int
    module: str
    name: str
    text: str
    arguments: bytes = b""
    """Of the error, so that it can be raised as what it was."""
    address: str | None = None
    """With NotOwner: where the key is believed to live."""


EntityMessage: TypeAlias = EntityAsk | EntityReply | EntityFailure
