"""A replica shows what its naive twin shows, in whatever order it was told."""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.ranges import WHOLE
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.replica import Replica
from tenure.columns.requests import RowMutation
from tenure.columns.sweeping import Sweep, doomed_within
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.messages import ReadColumn, ReadPage, ReadSupers
from tenure.protocol.replication.row.admission import Attempt, Late, entry_digest
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import AFTER, PLACE, position, row_key
from tenure.protocol.replication.row.pages import CellPage, Slice, Steps, SuperPage
from tenure.protocol.replication.row.states import is_marker
from tenure.protocol.replication.row.versions import Version
from tests.properties.rows import MUTATIONS, NAMES, SHAPES, Seen, TwinRow

TABLE = Table(
    "t",
    keys=bytes,
    names=Family(columns=bytes),
    times=Family(columns=bytes, order="time"),
    supers=Family(supers=bytes, columns=bytes),
    deep=Family(supers=bytes, columns=bytes, order="time"),
)
KEY = b"row\0key"
NOW = 1_000
P = TypeVar("P")
Told = list[tuple[int, list[Edit]]]


def replica_of(told: Told) -> Replica:
    replica = Replica(MemoryEngine())
    replica.open([TABLE])
    for time, edits in told:
        attempt = Attempt(Version(0, time))
        assert replica.write(RowMutation(TABLE, KEY, edits), attempt, NOW) is None
    return replica


def run(steps: Steps[P]) -> P:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            page: P = end.value
            return page


def seen(page: CellPage | SuperPage) -> list[Seen]:
    assert isinstance(page, CellPage)
    return [(cell.name, cell.version.time, cell.value) for cell in page.cells]


def sections() -> list[tuple[str, bytes | None]]:
    some = [b"", b"\0", b"\0\1", b"a", b"a\0", b"b", b"\xff"]
    return [
        (name, inner)
        for name, shape in SHAPES.items()
        for inner in (some if shape.has_supers else [None])
    ]


def whole(
    read: Callable[[Slice], CellPage | SuperPage], first: int, *, reverse: bool
) -> list[CellPage | SuperPage]:
    pages = [read(Slice(first, reverse=reverse))]
    while pages[-1].next is not None:
        pages.append(read(Slice(first, reverse=reverse, after=pages[-1].next)))
    return pages


@given(MUTATIONS, st.integers(1, 3), st.booleans())
def test_pages_show_what_the_twin_shows(told: Told, first: int, reverse: bool) -> None:
    replica, twin = replica_of(told), TwinRow()
    for time, edits in told:
        twin.write(time, edits)
    for name, inner in sections():
        shape = SHAPES[name]

        def read(
            part: Slice, name: str = name, inner: bytes | None = inner
        ) -> CellPage | SuperPage:
            return run(
                replica.read(
                    ReadPage(
                        table=TABLE.name, key=KEY, family=SHAPES[name].name, super=inner, part=part
                    )
                )
            )

        found = [each for page in whole(read, first, reverse=reverse) for each in seen(page)]
        expected = twin.columns(name, inner)
        assert found == (expected[::-1] if reverse else expected)
        for column in expected:
            one = run(
                replica.read(
                    ReadColumn(
                        table=TABLE.name, key=KEY, family=shape.name, super=inner, name=column[0]
                    )
                )
            )
            assert seen(one) == [column]


@given(MUTATIONS, st.integers(1, 3), st.booleans())
def test_pages_of_super_columns_show_what_the_twin_shows(
    told: Told, first: int, reverse: bool
) -> None:
    replica, twin = replica_of(told), TwinRow()
    for time, edits in told:
        twin.write(time, edits)
    for name in ("supers", "deep"):

        def read(part: Slice, name: str = name) -> CellPage | SuperPage:
            return run(
                replica.read(
                    ReadSupers(
                        table=TABLE.name, key=KEY, family=SHAPES[name].name, part=part, within=100
                    )
                )
            )

        found = [
            (inner, seen(page))
            for each in whole(read, first, reverse=reverse)
            if isinstance(each, SuperPage)
            for inner, page in each.supers
        ]
        expected = twin.supers(name)
        assert found == (expected[::-1] if reverse else expected)


@given(MUTATIONS, NAMES, NAMES, st.booleans())
def test_bounds_of_names_are_kept(told: Told, start: bytes, end: bytes, reverse: bool) -> None:
    replica, twin = replica_of(told), TwinRow()
    for time, edits in told:
        twin.write(time, edits)
    part = Slice(100, start, end, reverse)
    expected = [each for each in twin.columns("names", None) if start <= each[0] < end]
    found = seen(
        run(
            replica.read(
                ReadPage(
                    table=TABLE.name, key=KEY, family=SHAPES["names"].name, super=None, part=part
                )
            )
        )
    )
    assert found == (expected[::-1] if reverse else expected)
    supers = run(
        replica.read(
            ReadSupers(
                table=TABLE.name, key=KEY, family=SHAPES["supers"].name, part=part, within=100
            )
        )
    )
    assert isinstance(supers, SuperPage)
    names = [name for name, _ in twin.supers("supers") if start <= name < end]
    assert [name for name, _ in supers.supers] == (names[::-1] if reverse else names)


def entries(replica: Replica) -> dict[str, list[tuple[bytes, bytes]]]:
    return {name: list(replica.engine.cursor(f"t.{name}").walk(b"", None)) for name in SHAPES}


@given(MUTATIONS, st.randoms(use_true_random=False))
def test_the_order_of_repeats_does_not_matter_nor_how_often_they_come(
    told: Told, dice: Random
) -> None:
    again = [*told, *dice.sample(told, dice.randint(0, len(told)))]
    dice.shuffle(again)
    one, other = replica_of(told), replica_of(again)
    seen_by = [
        [
            run(
                each.read(
                    ReadPage(
                        table=TABLE.name,
                        key=KEY,
                        family=SHAPES[name].name,
                        super=inner,
                        part=Slice(100),
                    )
                )
            )
            for name, inner in sections()
        ]
        for each in (one, other)
    ]
    assert seen_by[0] == seen_by[1]


@given(MUTATIONS)
def test_digest_sums_and_places_follow_from_the_entries(told: Told) -> None:
    check_digest(replica_of(told))


def check_digest(replica: Replica) -> None:
    at = position(KEY, TABLE.kind)
    digest = 0
    for name, kept in entries(replica).items():
        places = [key for key, _ in kept if key.endswith(AFTER) or _is_place(key, at, name)]
        digest_of = [entry_digest(name, key, value) for key, value in kept if key not in places]
        for each in digest_of:
            digest ^= each
    record = replica.record(TABLE, at)
    assert int.from_bytes(record.digest) == digest
    all_kept = [value for kept in entries(replica).values() for _, value in kept]
    assert not (record.is_unmarked and any(map(is_marker, all_kept)))
    total = 0
    for each in replica.sums("t"):
        total ^= each
    assert total == digest
    again = Replica(replica.engine)
    again.open([TABLE])
    assert again.sums("t") == replica.sums("t")
    assert row_key(at + b"\2name", TABLE.kind)[0] == KEY


@given(MUTATIONS, st.integers(0, 12), MUTATIONS)
def test_sweeping_changes_nothing_that_readers_see_and_leaves_nothing_that_may_go(
    told: Told, horizon: int, later: Told
) -> None:
    swept, twin = replica_of(told), TwinRow()
    for time, edits in told:
        twin.write(time, edits)
    swept.raise_horizon(horizon)
    run(Sweep(swept, TABLE).steps())
    for time, edits in later:
        attempt = Attempt(Version(0, time))
        refused = swept.write(RowMutation(TABLE, KEY, edits), attempt, NOW)
        assert (refused == Late(horizon)) == (time <= horizon)
        if refused is None:
            twin.write(time, edits)
    run(Sweep(swept, TABLE).steps())
    for name, inner in sections():
        found = seen(
            run(
                swept.read(
                    ReadPage(
                        table=TABLE.name,
                        key=KEY,
                        family=SHAPES[name].name,
                        super=inner,
                        part=Slice(100),
                    )
                )
            )
        )
        assert found == twin.columns(name, inner)
    assert doomed_within(swept, TABLE, WHOLE, horizon) == 0
    kept = [value for all_of in entries(swept).values() for _, value in all_of]
    markers_and_tombstones = [each for each in kept if len(each) == 16 or each[16:] == b"\1"]
    assert all(int.from_bytes(each[8:16]) > horizon for each in markers_and_tombstones)
    check_digest(swept)


def test_a_row_of_which_nothing_is_left_goes() -> None:
    replica = replica_of([(1, [Edit("times", None, b"x", b"v")]), (2, [Edit()])])
    replica.raise_horizon(2)
    run(Sweep(replica, TABLE).steps())
    for name in replica.engine.spaces() - {"meta"}:
        assert list(replica.engine.cursor(name).walk(b"", None)) == []


def _is_place(key: bytes, at: bytes, name: str) -> bool:
    """Whether the key is of a place in the order of time."""
    if SHAPES[name].order == "name":
        return False
    rest = key[len(at) :]
    if SHAPES[name].has_supers and rest[:1] == b"\2":
        rest = rest[rest.index(b"\0\1") + 2 :]
    return rest[:1] == PLACE
