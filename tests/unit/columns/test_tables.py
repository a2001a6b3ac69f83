"""Tables as programs declare them are tables that a cluster takes."""

from uuid import UUID

import pytest

from tenure.columns.tables import Family, Table
from tenure.protocol.replication.row.names import NAME_TYPES
from tenure.protocol.topology.tables import TYPES_OF_NAMES, wrong_with_table


def test_the_words_for_types_of_names_are_those_that_a_cluster_takes() -> None:
    assert tuple(each.word for each in NAME_TYPES) == TYPES_OF_NAMES


@pytest.mark.parametrize(
    "declared",
    [
        Table("t", f=Family(columns=str)),
        Table("t", kind="hashed", keys=int, fenced_by="a pool", f=Family(columns=UUID)),
        Table("T_9", keys=bytes, writes="clock", f=Family(columns=bytes, supers=float)),
        Table("t" * 48, g=Family(columns=int, order="time", values=dict)),
    ],
)
def test_what_can_be_declared_can_be_made(declared: Table) -> None:
    assert wrong_with_table(declared.name, declared.record()) is None
