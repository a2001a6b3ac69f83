"""Sums of ranges: the same whether they were built or kept, and gone with what they were of."""

from random import Random

import pytest

from tenure.base.ranges import KeyRange
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.node_replica import NodeReplica
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.operations import ApplyRow, ReadSums, SealHorizon, SumsRead
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.sums import (
    INNER_SUMS,
    SUM_BYTES,
    SUMS,
    differing,
    inner_place,
    inner_places,
    place_among_sums,
)
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.replication.tasks import (
    BuildSums,
    FollowRanges,
    SweepSome,
    TaskDone,
    WipeRange,
)

TABLE = Table("t", f=Family(columns=str))
HALVES = (KeyRange(b"", b"\x80"), KeyRange(b"\x80", None))
LATER = 10**12


def replica_of(engine: MemoryEngine | None = None) -> NodeReplica:
    replica = NodeReplica(engine or MemoryEngine(), lambda: LATER)
    replica.open([TABLE])
    replica.load()
    return replica


def write(replica: NodeReplica, key: bytes, time: int, value: bytes | None) -> None:
    edit = Edit("f", None, b"n", value) if value is not None else Edit()
    replica.run(ApplyRow(table="t", key=key, edits=(edit,), attempt=Attempt(Version(0, time))))


def follow(replica: NodeReplica) -> None:
    replica.run(FollowRanges(HALVES))
    while not replica.run(BuildSums())[0].is_all:  # type: ignore[union-attr]
        pass


def sums(replica: NodeReplica) -> list[bytes | None]:
    found: list[bytes | None] = []
    for half in HALVES:
        result, _ = replica.run(ReadSums(table="t", range=half))
        assert isinstance(result, SumsRead)
        found.append(result.sums if result.is_known else None)
    return found


def fill(replica: NodeReplica, count: int = 600) -> None:
    random = Random(7)
    for i in range(count):
        write(replica, b"%d" % random.randrange(count), i + 1, random.choice((b"v", None)))


def test_sums_that_are_built_are_those_that_are_kept() -> None:
    one, other = replica_of(), replica_of()
    follow(one)
    fill(one)
    fill(other)
    assert sums(other) == [None, None]
    follow(other)
    assert sums(one) == sums(other)
    write(one, b"x", 10_000, b"v")
    assert sums(one) != sums(other)
    write(other, b"x", 10_000, b"v")
    assert sums(one) == sums(other)


def test_what_is_written_while_sums_are_built_counts_once() -> None:
    one, other = replica_of(), replica_of()
    follow(one)
    fill(one)
    fill(other)
    other.run(FollowRanges(HALVES))
    other.run(BuildSums())
    for number in range(200):
        for each in (one, other):
            write(each, b"late-%d" % number, 10_000 + number, b"v")
        if number == 100:
            other.run(BuildSums())
    follow(other)
    assert sums(one) == sums(other)


def test_sums_are_there_after_a_restart_and_without_those_of_other_ranges() -> None:
    engine = MemoryEngine()
    one = replica_of(engine)
    follow(one)
    fill(one)
    again = replica_of(engine)
    write(again, b"after the restart", 10_000, b"v")
    again.run(FollowRanges(HALVES))
    fresh = replica_of()
    follow(fresh)
    fill(fresh)
    write(fresh, b"after the restart", 10_000, b"v")
    assert sums(again) == sums(fresh)
    again.run(FollowRanges((HALVES[0],)))
    assert [each is None for each in sums(again)] == [False, True]
    third = replica_of(engine)
    third.run(FollowRanges(HALVES))
    assert sums(third)[1] is None
    follow(third)
    assert sums(third) == sums(fresh)


def test_a_row_that_is_wiped_or_swept_is_in_no_sum() -> None:
    one, empty = replica_of(), replica_of()
    for each in (one, empty):
        follow(each)
    fill(one)
    for number in range(600):
        write(one, b"%d" % number, 10_000, None)
    one.run(SealHorizon(range=KeyRange(b"", None), time=20_000))
    while True:
        result, _ = one.run(SweepSome())
        assert isinstance(result, TaskDone)
        if result.is_all:
            break
    assert sums(one) == sums(empty)
    fill(one)
    while not one.run(WipeRange(KeyRange(b"", None)))[0].is_all:  # type: ignore[union-attr]
        pass
    follow(one)
    assert sums(one) == sums(empty)


def test_only_what_is_sealed_is_swept() -> None:
    one = replica_of()
    follow(one)
    for number in range(100):
        write(one, bytes([2 * number]), 10, None)
    one.run(SealHorizon(range=HALVES[0], time=20))
    before = sums(one)
    assert any(before[1] or b"")  # there are deletes in both halves
    while not one.run(SweepSome())[0].is_all:  # type: ignore[union-attr]
        pass
    after = sums(one)
    assert before[0] != after[0]
    assert before[1] == after[1]


@pytest.mark.parametrize("wanted", [1, 7])
def test_inner_sums_say_which_rows_differ(wanted: int) -> None:
    one, other = replica_of(), replica_of()
    for each in (one, other):
        follow(each)
        fill(each)
    for number in range(wanted):
        write(other, b"only-%d" % number, 10_000, b"v")
    found = set()
    for half in HALVES:
        mine, theirs = one.range_sums.read("t", half), other.range_sums.read("t", half)
        assert mine is not None
        assert theirs is not None
        for place in differing(mine, theirs):
            inner = one.range_sums.read("t", half, place), other.range_sums.read("t", half, place)
            assert inner[0] is not None
            assert inner[1] is not None
            places = [inner_places(place)[each] for each in differing(inner[0], inner[1])]
            rows = set(one.range_sums.rows("t", half, places)[0])
            found |= set(other.range_sums.rows("t", half, places)[0]) - rows
    assert len(found) == wanted


@pytest.mark.parametrize("count", [SUMS, INNER_SUMS, 40])
def test_every_sum_that_differs_is_found_wherever_it_is(count: int) -> None:
    same = bytes(count * SUM_BYTES)
    for place in range(count):
        other = bytearray(same)
        other[place * SUM_BYTES + place % SUM_BYTES] = 1
        assert list(differing(same, bytes(other))) == [place]
    all_others = b"x" * len(same)
    assert list(differing(same, all_others)) == list(range(count))


def test_an_inner_sum_is_in_its_sum() -> None:
    for number in range(500):
        at = b"row-%d" % number
        assert inner_place(at) in inner_places(place_among_sums(at))
        assert inner_place(at) // INNER_SUMS == place_among_sums(at)
