"""A cache's board for its readers: sizes, which entries make room, and what no reader may hit."""

from random import Random
from typing import Any

import pytest

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.cache.board import OVERHEAD_BYTES, SPARE_ENDS, CacheBoard, CachedValue, HitSampler
from tenure.cache.object_keys import ObjectKeys
from tenure.errors import ForkedError
from tenure.protocol.volume.client.events import Believe, DoubtEntries, DropEntries, KeepEntry
from tenure.protocol.volume.messages import AsOf

SERVER = "http://127.0.0.1:7500"
TERM, LEASE = 3, 600


class Board(CacheBoard):
    """A board by a clock that a test sets, whose values are texts."""

    def __init__(self, limit: int = 100, limit_bytes: int = 1 << 20, audit: float = 0.0) -> None:
        self.now = 0
        sampler = HitSampler(audit, Random(1))
        super().__init__(ObjectKeys(str), bytes.decode, self._read, limit, limit_bytes, sampler)
        self.open()
        self.perform(Believe(SERVER, 1, self.after(TERM)))

    def _read(self) -> Instant:
        return Instant(self.now * SECOND_NS)

    def after(self, seconds: int) -> Instant:
        return Instant((self.now + seconds) * SECOND_NS)

    def put(self, name: str, value: str | None, *, kind: Any = "value", lease: int = LEASE) -> None:  # noqa: ANN401
        self.perform(
            KeepEntry(
                key=Key(name.encode()),
                server=SERVER,
                reader=1,
                until=self.after(lease),
                as_of=AsOf(history=1, number=1, count=1),
                kind=kind if value is not None else "absent",
                value=b"" if value is None else value.encode(),
            )
        )

    def read(self, name: str) -> CachedValue:
        found = self.there[name]
        found.was_read = True
        return found


def sizes(board: Board) -> int:
    return sum(each.size for each in board.there.values())


def test_the_bytes_are_those_of_what_is_there() -> None:
    board = Board()
    board.put("a", "x" * 10)
    assert board.size == OVERHEAD_BYTES + 10
    board.put("a", "x" * 30)  # another value
    assert board.size == OVERHEAD_BYTES + 30
    board.put("a", "", kind="unchanged")
    assert board.size == OVERHEAD_BYTES + 30
    assert board.there["a"].value == "x" * 30
    board.put("b", None)
    assert board.size == 2 * OVERHEAD_BYTES + 30 == sizes(board)
    board.perform(DropEntries((Key(b"a"), Key(b"c"))))
    assert board.size == OVERHEAD_BYTES == sizes(board)


def test_a_value_of_another_type_takes_the_old_one_along() -> None:
    board = Board()
    board.put("a", "old")
    found = board.read("a")
    with pytest.raises(UnicodeDecodeError):
        board.perform(
            KeepEntry(
                key=Key(b"a"),
                server=SERVER,
                reader=1,
                until=board.after(LEASE),
                as_of=AsOf(history=1, number=1, count=2),
                kind="value",
                value=b"\xff",
            )
        )
    assert "a" not in board.there
    assert not found.is_live
    assert board.size == 0


def test_a_reader_that_holds_an_entry_sees_that_it_has_made_room() -> None:
    """Servers tell nobody of writes of what a cache no longer has."""
    board = Board(limit=1)
    board.put("a", "old")
    found = board.there["a"]
    board.put("b", "new")
    assert board.make_room() == (b"a",)
    assert not found.is_live


def test_what_is_read_stays_but_not_if_all_of_it_is() -> None:
    board = Board(limit=2)
    for name in ("a", "b", "c"):
        board.put(name, name)
        board.read(name)
    assert board.make_room() == (b"a",)  # each had another round
    assert not board.there["b"].was_read
    board.read("b")
    board.put("d", "d")
    assert board.make_room() == (b"c",)


def test_readers_that_read_on_hold_up_nobody() -> None:
    """Making room counts its rounds, since it would otherwise find each entry read again."""
    board = Board(limit=1)

    class Reread(CachedValue):
        __slots__ = ()

        @property
        def was_read(self) -> bool:
            return True

        @was_read.setter
        def was_read(self, was_read: bool) -> None:
            pass

    for name in ("a", "b", "c"):
        board.put(name, name)
        board.there[name].__class__ = Reread
    assert board.make_room() == (b"a", b"b")


def test_one_entry_stays_whatever_its_size() -> None:
    board = Board(limit_bytes=100)
    board.put("a", "x" * 1000)
    assert board.make_room() == ()


def test_a_suspect_entry_was_last_known_current_when_it_became_so() -> None:
    board = Board()
    for name, lease in (("a", LEASE), ("b", 1)):
        board.put(name, name, lease=lease)
    board.now = 2
    board.perform(DoubtEntries((Key(b"a"), Key(b"b"), Key(b"c"))))
    assert board.there["a"].until == board.after(0)
    assert board.there["b"].until == board.after(-1)  # its own lease had ended before
    board.put("a", "a")
    board.now = 10
    board.perform(DoubtEntries((Key(b"a"),)))
    assert board.there["a"].until == board.after(TERM - 10)  # its reader's volume lease had


def test_what_ends_soon_is_told_once_and_only_where_it_was_read() -> None:
    board = Board()
    for name in ("read", "not read", "dropped", "late"):
        board.put(name, name, lease=600 if name == "late" else 10)
    for name in ("read", "dropped", "late"):
        board.read(name)
    board.perform(DropEntries((Key(b"dropped"),)))
    assert board.ending_soon(SERVER, board.after(20), 100) == (b"read",)
    assert board.ending_soon(SERVER, board.after(20), 100) == ()
    assert board.ending_soon(SERVER, board.after(700), 100) == (b"late",)


def test_no_more_is_told_at_once_than_asked_for() -> None:
    board = Board()
    for name in ("a", "b", "c"):
        board.put(name, name, lease=10)
        board.read(name)
    assert board.ending_soon(SERVER, board.after(20), 2) == (b"a", b"b")
    assert board.ending_soon(SERVER, board.after(20), 2) == (b"c",)


def test_ends_of_what_is_gone_are_forgotten() -> None:
    board = Board()
    for i in range(3 * SPARE_ENDS):
        board.put("a", str(i))
    assert len(board._ends[SERVER]) <= SPARE_ENDS + 3


def test_hits_of_earlier_readers_stay_counted_and_use_is_told_once() -> None:
    board = Board()
    board.put("a", "a")
    found: Any = board.there["a"].lease
    found.hits += 2
    assert not board.was_used("http://127.0.0.1:1")
    assert board.was_used(SERVER)
    assert not board.was_used(SERVER)
    board.perform(Believe(SERVER, 2, board.after(TERM)))
    assert board.hits == 2


def test_audits_take_a_share_of_the_hits_and_each_object_once() -> None:
    sampler = HitSampler(0.1, Random(1))
    for i in range(1000):
        sampler.note(f"k{i % 20}")
    found = sampler.take()
    assert len(found) == len(set(found)) <= 20
    assert sampler.take() == []
    for i in range(100_000):
        sampler.note(f"k{i}")
    assert len(sampler._names) == 100


def test_a_share_of_hits_is_no_more_than_a_share() -> None:
    sampler = HitSampler(0.01, Random(1))
    for i in range(2000):
        sampler.note(f"k{i}")
    assert 5 <= len(sampler.take()) <= 50


def test_a_forked_child_reads_nothing() -> None:
    board = Board()
    board.put("a", "a")
    board.on_fork()
    assert board.is_forked
    assert not board.there
    with pytest.raises(ForkedError):
        board.check("a")


def test_what_was_replaced_or_is_gone_makes_no_room_and_does_not_pile_up() -> None:
    """Only the present life of an entry is looked at when room is made."""
    board = Board(limit=2)
    for name in ("a", "b"):
        board.put(name, name)
    board.put("a", "again")
    board.perform(DropEntries((b"b",)))
    board.put("c", "c")
    board.put("d", "d")
    assert board.make_room() == (b"a",)
    assert set(board.there) == {"c", "d"}
    for _ in range(3 * SPARE_ENDS):
        board.put("c", "c")
    assert len(board._next) <= 2 * len(board.there) + SPARE_ENDS
    assert board.make_room() == ()
    board.put("e", "e")
    assert board.make_room() == (b"d",)
