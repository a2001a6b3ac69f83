"""Entries that leave a ledger."""

from typing import NamedTuple

import msgspec


class PlacedOp(msgspec.Struct, frozen=True, array_like=True):
    """One operation, with its ledger and its place there."""

    epoch: int
    """When its ledger began, in real nanoseconds: a later one is greater."""
    place: int
    op: str


class Point(NamedTuple):
    """How far a ledger was."""

    epoch: int = 0
    place: int = 0


class Shown(msgspec.Struct, frozen=True):
    """The contents of a reading."""

    last: PlacedOp
    shown: list[str]
    waiting: list[str]
    alarms: dict[str, float]
    """When each is due."""
