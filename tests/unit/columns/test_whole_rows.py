"""A page of a whole row is the same from one replica's parts and from the state of the row."""

from itertools import count
from random import Random

import pytest

from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.node_replica import NodeReplica
from tenure.columns.tables import table_of
from tenure.protocol.replication.messages import WholeRow
from tenure.protocol.replication.operations import (
    ApplyRow,
    PartsRead,
    ReadParts,
    ReadState,
    StateRead,
)
from tenure.protocol.replication.request.whole_rows import questions_of, row_of_parts, row_of_state
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import shapes_of
from tenure.protocol.replication.row.limits import PAGE_BYTES
from tenure.protocol.replication.row.sections import SectionPart
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import FamilyRecord, TableRecord

RECORD = TableRecord(
    "hashed",
    "bytes",
    "",
    {
        "inner": FamilyRecord("bytes", supers="bytes"),
        "late": FamilyRecord("bytes", supers="bytes", order="time"),
        "names": FamilyRecord("bytes"),
        "times": FamilyRecord("bytes", order="time"),
    },
)
SHAPES = shapes_of(RECORD)


class Replica:
    """One replica, and its row."""

    def __init__(self) -> None:
        self.store = NodeReplica(MemoryEngine(), lambda: 1_000)
        self.store.open([table_of("t", RECORD)])
        self.store.load()
        self._times = count(1)

    def write(self, *edits: Edit) -> None:
        attempt = Attempt(Version(0, next(self._times)))
        self.store.run(ApplyRow(table="t", key=b"k", edits=edits, attempt=attempt))

    def parts(self, within: int) -> tuple[SectionPart, ...]:
        result, _ = self.store.run(
            ReadParts(table="t", key=b"k", questions=questions_of(SHAPES, within))
        )
        assert isinstance(result, PartsRead)
        return result.parts

    def row_of_state(self, within: int) -> WholeRow:
        result, _ = self.store.run(ReadState(table="t", key=b"k"))
        assert isinstance(result, StateRead)
        return row_of_state(b"k", SHAPES, result.state, within)


def some_edit(random: Random) -> Edit:
    family = random.choice(list(SHAPES))
    inner = random.choice((b"", b"\0", b"a\0b")) if SHAPES[family].has_supers else None
    name, value = random.choice((b"", b"\0", b"n", b"n\xff")), random.choice((b"v", b"w", None))
    match random.randrange(10):
        case 0:
            return Edit(family, None, None, None)
        case 1 if inner is not None:
            return Edit(family, inner, None, None)
        case _:
            return Edit(family, inner, name, value)


@pytest.mark.parametrize("seed", range(10))
def test_parts_and_state_tell_the_same_page(seed: int) -> None:
    random, replica = Random(seed), Replica()
    compared = 0
    for _ in range(60):
        replica.write(*(some_edit(random) for _ in range(random.randint(1, 3))))
        for within in (1, 2, 100):
            row = row_of_parts(b"k", SHAPES, replica.parts(within))
            if row is not None:
                compared += bool(row.supers and row.simple)
                assert row == replica.row_of_state(within)
    assert compared > 50


def test_the_families_of_a_row_share_the_bytes_of_a_page() -> None:
    replica = Replica()
    value = bytes(PAGE_BYTES // 8)
    for name in range(10):
        column = b"%d" % name
        replica.write(Edit("inner", column, column, value), Edit("inner", b"0", column, value))
        replica.write(Edit("names", None, column, value), Edit("times", None, column, value))
    parts = replica.parts(100)
    assert sum(each.size for each in parts) < PAGE_BYTES + 3 * len(value)
    row = row_of_parts(b"k", SHAPES, parts)
    assert row is not None
    assert row.size < PAGE_BYTES + 3 * len(value)
    assert row.supers["inner"].next == b"0"
    assert [len(row.simple[name].cells) for name in ("names", "times")] == [1, 1]
    settled = replica.row_of_state(100)
    assert settled.supers["inner"].next == b"0"
    assert [len(settled.simple[name].cells) for name in ("names", "times")] == [1, 1]


def test_lists_without_columns_and_parts_without_any_tell_no_page() -> None:
    """The ones come from a release before, and behind the others there may be more."""
    replica = Replica()
    replica.write(Edit("inner", b"s", b"n", b"v"), Edit("names", None, b"n", b"v"))
    listed, column, *rest = replica.parts(10)
    assert row_of_parts(b"k", SHAPES, (listed, column, *rest)) is not None
    assert row_of_parts(b"k", SHAPES, (listed, *rest)) is None
    assert row_of_parts(b"k", SHAPES, (SectionPart(), SectionPart(last=b"z"), *rest[1:])) is None
