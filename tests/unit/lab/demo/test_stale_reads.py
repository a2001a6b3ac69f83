"""The judge of the demo with caches: what in a record is a stale read, and what is not."""

from itertools import permutations
from pathlib import Path

import pytest

from lab.demo.caches.read_record import (
    READ,
    WHOLE_UNTIL,
    WRITTEN,
    ReadEntry,
    ReadRecordReader,
    ReadRecordWriter,
    What,
)
from lab.demo.caches.stale_reads import ReadJudge, StaleRead
from tenure.base.instants import Instant


def entry(what: What, version: int, began: int, ended: int, product: int = 7) -> ReadEntry:
    return ReadEntry(what, product, version, Instant(began), Instant(ended))


def whole(until: int) -> ReadEntry:
    return entry(WHOLE_UNTIL, 0, until, until, product=0)


def judged(*record: ReadEntry) -> list[StaleRead]:
    judge = ReadJudge(frontends=1)
    for each in record:
        judge.add("a", each)
    judge.judge(is_over=True)
    assert judge.reads == sum(each.what == READ for each in record)
    return judge.found


WRITE = entry(WRITTEN, 2, 10, 20)


def test_a_read_that_begins_after_the_answer_to_a_write_returns_it_or_a_later_one() -> None:
    stale = entry(READ, 1, 21, 22)
    assert judged(WRITE, stale) == [StaleRead("a", stale, 2)]
    assert judged(WRITE, entry(READ, 2, 21, 22)) == []
    assert judged(WRITE, entry(READ, 3, 21, 22)) == []
    assert judged(WRITE, entry(READ, 1, 21, 22, product=8)) == []
    assert judged(entry(READ, 0, 1, 2)) != [], "what is not there is older than the first version"


def test_a_read_that_is_under_way_meanwhile_may_return_either() -> None:
    for began, ended in ((1, 5), (1, 30), (15, 30), (20, 30)):
        assert judged(WRITE, entry(READ, 1, began, ended)) == []
        assert judged(WRITE, entry(READ, 2, began, ended)) == []


def test_the_judgement_is_the_same_in_whatever_order_a_record_comes_in() -> None:
    stale = entry(READ, 2, 41, 42)
    reads = [entry(READ, 1, 20, 30), stale, entry(READ, 3, 41, 42)]
    for order in permutations(reads):
        assert judged(*order, WRITE, entry(WRITTEN, 3, 35, 40)) == [StaleRead("a", stale, 3)]


def test_a_read_is_judged_when_all_records_are_whole_up_to_its_beginning() -> None:
    """A write of a frontend that stands still may come to light much later."""
    judge = ReadJudge(frontends=2)
    judge.add("a", entry(READ, 1, 21, 22))
    judge.add("a", whole(30))
    judge.judge()
    judge.add("b", whole(15))
    judge.judge()
    assert (judge.reads, judge.found) == (0, [])
    judge.add("b", WRITE)
    judge.add("b", whole(25))
    judge.judge()
    assert (judge.reads, len(judge.found)) == (1, 1)
    assert str(judge.found[0]) == (
        "a read version 1 of product 7, and version 2 was written before"
    )


def test_two_writers_of_one_product_would_be_a_fault_of_the_demo() -> None:
    judge = ReadJudge(frontends=1)
    judge.add("a", WRITE)
    with pytest.raises(AssertionError, match="one writer"):
        judge.add("a", WRITE)


def test_a_record_is_read_as_it_grows_and_half_an_entry_is_left_for_later(tmp_path: Path) -> None:
    writer, reader = ReadRecordWriter(tmp_path, "frontend-1"), ReadRecordReader(tmp_path)
    writer.add(READ, 7, 2, Instant(3), Instant(4))
    assert list(reader.new()) == [], "nothing is whole yet"
    writer.flush(Instant(5))
    read = ("frontend-1", entry(READ, 2, 3, 4))
    assert list(reader.new()) == [read, ("frontend-1", whole(5))]
    writer.flush(Instant(6))
    with (tmp_path / "frontend-1.reads").open("ab") as file:
        file.write(b"half")
    assert list(reader.new()) == [("frontend-1", whole(6))]
    assert list(reader.new()) == []
    writer.close()
