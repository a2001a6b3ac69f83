"""Listing rows by their positions: as many as one answer has."""

from collections.abc import Iterator

LISTED_ROWS = 1_000
"""The most rows in one answer."""
LISTED_BYTES = 1 << 20
"""An answer ends with the row whose key brings it above this: it may have the longest keys."""


def listed(walk: Iterator[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], bool]:
    """As many rows as one answer has, and whether they are the last."""
    found: list[tuple[bytes, bytes]] = []
    size = 0
    for row in walk:
        if len(found) == LISTED_ROWS or size >= LISTED_BYTES:
            return found, False
        found.append(row)
        size += len(row[0])
    return found, True
