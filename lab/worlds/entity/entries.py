"""Entries that leave a ledger."""

from typing import NamedTuple

import msgspec


class PlacedOp(msgspec.Struct, frozen=True, array_like=True):
    """One operation, with its ledger and its place in it."""

    epoch: int
    """When its ledger began, in real nanoseconds: a later ledger has a greater number."""
    place: int
    op: str


class Point(NamedTuple):
    """A point in the life of a ledger."""

    epoch: int = 0
    place: int = 0


class Shown(msgspec.Struct, frozen=True):
    """The contents of a ledger, as a reading shows them."""

    last: PlacedOp
    shown: list[str]
    waiting: list[str]
    alarms: dict[str, float]
    """When each alarm is due."""
