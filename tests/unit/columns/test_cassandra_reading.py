"""Reading a row on Cassandra while it is written: what one answer has, the next may lack."""

from typing import Any, cast

import pytest

from tenure.columns.backends.cassandra.driver import CassandraDriver
from tenure.columns.backends.cassandra.reading import RowReading, Sizes
from tenure.columns.backends.cassandra.statements import ColumnPlace, Cql, bounds_of, places, remove
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.row.layout import inverted
from tenure.protocol.replication.row.pages import Slice

pytestmark = pytest.mark.asyncio

TABLE = Table("t", log=Family(columns=bytes, order="time"))
LOG = TABLE.shapes["log"]


def place(time: int) -> ColumnPlace:
    """Return where the column `c` stands in the order of time if it was written then."""
    return ColumnPlace(b"k", places(LOG), b"", inverted(time.to_bytes(8, "big")) + b"c")


class TwoReplicas:
    """A driver whose answers come from two replicas: one lists where a column was put at these
    times, and the other has its value of time 2.
    """

    speaks_in_full = False

    def __init__(self, *times: int) -> None:
        self._listed = [(place(time).name, b"", time) for time in times]
        self.applied: list[Cql] = []

    async def execute(self, said: Cql, level: str) -> list[tuple[Any, ...]]:
        del level
        return self._listed if places(LOG) in said.values else [(b"c", b"value", 2)]

    async def apply(self, said: list[Cql], level: str) -> None:
        del level
        self.applied += said


async def listed(driver: TwoReplicas) -> list[int]:
    reading = RowReading(cast("CassandraDriver", driver), Sizes(), TABLE, b"k", "one")
    page = await reading.page(LOG, None, Slice(10))
    return [cell.version.time for cell in page.cells]


async def test_a_place_that_a_newer_value_has_left_is_removed() -> None:
    driver = TwoReplicas(2, 1)
    assert await listed(driver) == [2]
    assert driver.applied == [remove(TABLE, place(1), 1)]


async def test_a_place_whose_value_has_not_arrived_here_stays() -> None:
    driver = TwoReplicas(3, 2)
    assert await listed(driver) == [2]
    assert driver.applied == []


@pytest.mark.parametrize(
    ("part", "after", "found"),
    [
        (Slice(1, b"d", b"f"), b"a", ((">=", b"d"), ("<", b"f"))),
        (Slice(1, b"d", b"f"), b"d", ((">", b"d"), ("<", b"f"))),
        (Slice(1, b"d", b"f"), b"e", ((">", b"e"), ("<", b"f"))),
        (Slice(1, None, b"d", reverse=True), b"f", (None, ("<", b"d"))),
        (Slice(1, None, b"d", reverse=True), b"c", (None, ("<", b"c"))),
        (Slice(1, reverse=True), b"c", (None, ("<", b"c"))),
    ],
)
async def test_a_page_that_goes_on_keeps_to_its_bounds(
    part: Slice, after: bytes, found: tuple[object, object]
) -> None:
    bounds = bounds_of(part, after)
    assert (bounds.lower, bounds.upper) == found
