"""Copying entities out of a pool, and into one: what owners are asked for exports and imports.

An owner reads and writes the lines of an export itself, because only it knows the class. An entity
that does not fit into one message is copied out part by part, while its turn is held; and it is
put in part by part, and cannot be called before the last part is there.

A question may arrive late, when whoever asked has given up and asked again. So an owner takes an
entity only with a permit that it has given seconds ago: when a question was given up for long
enough, nothing of it begins any more.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.entity.export_lines import DIGEST_BYTES
from tenure.protocol.entity.key_line import EntityKey, Name

PART_BYTES = 7 << 18
"""The most bytes of the lines in one message."""
FULL_PART = 1 << 18
"""A part ends with the line that brings it to this size."""
PART_ITEMS = 1000
"""The most lines of a part: a commit has so many items at most."""
PERMIT_SECONDS = 5.0
"""How long a permit counts: less than a manager waits for the answer."""
Lines: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=PART_BYTES)]
Digest: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=DIGEST_BYTES)]
Permit: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]


class CopyEntity(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask for the lines of one entity."""

    key: EntityKey
    copy: Number = 0
    """Which copy goes on; 0 begins one."""


class CopiedLines(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Some lines of an entity."""

    lines: Lines
    """Empty if nothing is kept of it, or the owner is still at it."""
    copy: Number
    """With what to ask for those that follow; 0 if these are the last."""
    kind: Name
    version: Number


class PutEntity(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Put some lines in, all of one entity."""

    key: EntityKey
    kind: Name
    """The class that has exported them."""
    digest: Digest
    """Of the whole entity."""
    lines: Lines
    part: Number
    """How many parts come before."""
    is_last: bool
    permit: Permit = b""
    replaces: Digest = b""
    """What they may take the place of; empty if nothing may be there."""


class PutDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What has become of it.

    `put`: the entity is there. `same`: it was there before. `differs`: another is there, and stays;
    `there` is its digest. `part`: so many `parts` are there now, 0 where it is to be begun again;
    no call reaches the entity before the last. `stale`: nothing was done, and this is a new permit.
    """

    outcome: Literal["put", "same", "differs", "part", "stale"]
    permit: Permit
    there: Digest = b""
    parts: Number = 0
