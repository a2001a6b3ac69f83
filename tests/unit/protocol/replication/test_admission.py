"""A replica admits some writes, and refuses others (R4, R11, R20, R24)."""

import msgspec

from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.row.admission import (
    Ahead,
    Attempt,
    Late,
    Mutation,
    MutationAdmitted,
    Outranked,
    Refused,
)
from tenure.protocol.replication.row.cells import cell_of
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import CELL, MARKER, FamilyShape
from tenure.protocol.replication.row.limits import AHEAD_US
from tenure.protocol.replication.row.merging import StateMerge
from tenure.protocol.replication.row.records import RowRecord, record_of, stored
from tenure.protocol.replication.row.states import RowState
from tenure.protocol.replication.row.versions import Version

SHAPES = {"f": FamilyShape("f"), "t": FamilyShape("t", order="time")}
SPACES = {"f": "table.f", "t": "table.t"}
NOW = 1_000
AT = b"row\0\1"


def admit(
    attempt: Attempt,
    record: RowRecord | None = None,
    edit: Edit | None = None,
    horizon: int = 0,
) -> MutationAdmitted | Refused:
    mutation = Mutation(SHAPES, SPACES, AT, [edit or Edit("f", None, b"c", b"v")])
    record = record or RowRecord()
    found = {family: [None] * len(keys) for family, keys in mutation.wanted(record)}
    return mutation.admit(attempt, record, found, horizon, NOW)


def newest(number: int, time: int) -> RowRecord:
    return RowRecord(newest=Version(number, time).packed(), fence=number)


def test_a_write_is_merged_wherever_it_lies() -> None:
    for time in (9, 10, 11):
        admitted = admit(Attempt(Version(0, time)), newest(0, 10))
        assert isinstance(admitted, MutationAdmitted)
        assert admitted.record.newest == Version(0, max(time, 10)).packed()


def test_a_coordinator_of_an_earlier_release_is_told_to_draw_above_what_the_row_has() -> None:
    for time in (9, 10):
        assert admit(Attempt(Version(0, time), "first"), newest(0, 10)) == Late(10)
    assert isinstance(admit(Attempt(Version(0, 11), "first"), newest(0, 10)), MutationAdmitted)


def test_what_is_not_above_the_horizon_is_late() -> None:
    attempt = Attempt(Version(0, 50))
    assert admit(attempt, horizon=50) == Late(50)
    assert isinstance(admit(attempt, horizon=49), MutationAdmitted)


def test_a_time_more_than_a_minute_past_the_clock_is_refused() -> None:
    assert isinstance(admit(Attempt(Version(0, NOW + AHEAD_US))), MutationAdmitted)
    assert admit(Attempt(Version(0, NOW + AHEAD_US + 1))) == Ahead(NOW + AHEAD_US)


def test_a_clock_that_was_put_back_keeps_nobody_from_writing() -> None:
    far = NOW + 10 * AHEAD_US
    assert isinstance(admit(Attempt(Version(0, far + 1)), newest(0, far)), MutationAdmitted)
    assert isinstance(admit(Attempt(Version(0, far + 1)), horizon=far), MutationAdmitted)


def test_what_must_be_above_a_time_far_ahead_may_be_so_itself() -> None:
    """Another replica has that time, and told the first round."""
    far = NOW + 10 * AHEAD_US
    assert isinstance(admit(Attempt(Version(0, far + 1), above=far)), MutationAdmitted)


def test_a_lower_lease_number_is_refused_whatever_its_time() -> None:
    record = RowRecord(fence=7, journal=1)
    assert admit(Attempt(Version(6, 999), journal=1), record) == Outranked(7, 1)
    assert admit(Attempt(Version(0, 999)), record) == Outranked(7, 1)
    assert isinstance(admit(Attempt(Version(7, 1), journal=1), record), MutationAdmitted)


def test_the_same_number_of_another_journal_is_another_lease() -> None:
    record = RowRecord(fence=7, journal=1)
    assert admit(Attempt(Version(7, 9), journal=2), record) == Outranked(7, 1)
    admitted = admit(Attempt(Version(8, 9), journal=2), record)
    assert isinstance(admitted, MutationAdmitted)
    assert (admitted.record.fence, admitted.record.journal) == (8, 2)


def test_two_edits_of_one_column_in_one_mutation_are_merged() -> None:
    for edits in ([b"a", b"b"], [b"b", b"a"]):
        mutation = Mutation(SHAPES, SPACES, AT, [Edit("t", None, b"c", value) for value in edits])
        admitted = mutation.admit(Attempt(Version(0, 5)), RowRecord(), {}, 0, NOW)
        assert isinstance(admitted, MutationAdmitted)
        [cell, _] = [value for _, _, value in admitted.puts]
        assert cell is not None
        assert cell.endswith(b"\0b")


def test_markers_are_looked_for_where_the_row_may_have_some() -> None:
    write = Mutation(SHAPES, SPACES, AT, [Edit("f", None, b"c", b"v")])
    fresh = record_of(None)
    assert list(write.wanted(fresh)) == [("f", [AT + CELL + b"c"])]
    written = admit(Attempt(Version(0, 1)), fresh)
    assert isinstance(written, MutationAdmitted)
    assert list(write.wanted(written.record)) == [("f", [AT + CELL + b"c"])]
    deleted = admit(Attempt(Version(0, 2)), written.record, Edit("f"))
    assert isinstance(deleted, MutationAdmitted)
    for record in (deleted.record, RowRecord()):
        assert list(write.wanted(record)) == [("f", [AT + MARKER, AT + CELL + b"c"])]
    again = admit(Attempt(Version(0, 3)), deleted.record)
    assert isinstance(again, MutationAdmitted)
    assert not again.record.is_unmarked


def test_records_that_were_kept_before_markers_were_told_of_may_have_some() -> None:
    before = msgspec.msgpack.decode(stored(record_of(None)))[:-1]
    assert not record_of(msgspec.msgpack.encode(before)).is_unmarked


def test_a_state_with_a_marker_is_told_of() -> None:
    marker = Version(0, 5).packed()
    for entry, is_unmarked in (((b"\2c", cell_of(marker, b"v")), True), ((MARKER, marker), False)):
        state = RowState(entries=(("f", *entry),))
        merge = StateMerge(SHAPES, SPACES, AT, state)
        admitted = merge.admit(record_of(None), {"f": [None]}, (), 0)
        assert isinstance(admitted, MutationAdmitted)
        assert len(admitted.puts) == 1
        assert admitted.record.is_unmarked is is_unmarked


def test_times_are_drawn_above_all_that_was_drawn_and_seen() -> None:
    clock = WriteClock()
    assert [clock.draw(wall) for wall in (10, 10, 5, 20)] == [10, 11, 12, 20]
    clock.see(Version(0, 30))
    clock.see(Version(0, 1))
    assert [clock.draw(wall) for wall in (25, 40)] == [31, 40]
