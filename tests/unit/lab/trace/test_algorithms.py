"""The seven algorithms on traces short enough to count by hand."""

from array import array
from math import inf
from random import Random

import pytest

from lab.trace.algorithms import Algorithm, Delayed, ObjectLease, Poll, VolumeLease
from lab.trace.replay import Make, replay, without_needless_writes
from lab.trace.tally import RECORD_BYTES, Tally
from lab.trace.workload import Trace

A, B = 0, 1
"""Two files of one server."""


def trace_of(
    reads: list[tuple[float, int, int]], writes: list[tuple[float, int]] | None = None
) -> Trace:
    written = writes or []
    return Trace(
        array("i", [0, 0]),
        array("d", [at for at, _, _ in reads]),
        array("i", [client for _, client, _ in reads]),
        array("i", [file for _, _, file in reads]),
        array("d", [at for at, _ in written]),
        array("i", [file for _, file in written]),
    )


def messages(make: Make, trace: Trace) -> int:
    return replay(trace, make).all_messages


READS = trace_of([(0, 0, A), (5, 0, A), (20, 0, A)])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda t, c: Poll(t, c, 0), 6),
        (lambda t, c: Poll(t, c, 10), 4),
        (lambda t, c: ObjectLease(t, c, 10), 4),
        (lambda t, c: ObjectLease(t, c, inf), 2),
        (lambda t, c: VolumeLease(t, c, 10, 1000), 4),
        (lambda t, c: VolumeLease(t, c, 1000, 10), 4),
        (lambda t, c: Delayed(t, c, 10, 1000), 4),
    ],
    ids=["each read", "poll", "lease", "callback", "volume", "object", "delayed"],
)
def test_reads_alone(make: Make, expected: int) -> None:
    assert messages(make, READS) == expected


def test_a_poll_shows_what_was_written_since_it_asked() -> None:
    trace = trace_of([(0, 0, A), (2, 0, A), (5, 0, A), (20, 0, A)], [(3, A)])
    tally = replay(trace, lambda t, c: Poll(t, c, 10))
    assert tally.stale_reads == 1
    assert replay(trace, lambda t, c: Poll(t, c, 0)).stale_reads == 0


def test_a_write_is_told_to_whoever_has_a_lease_that_runs() -> None:
    trace = trace_of([(0, 0, A), (8, 1, A), (30, 0, A)], [(12, A)])
    assert messages(lambda t, c: ObjectLease(t, c, 10), trace) == 3 * 2 + 1 * 2
    assert messages(lambda t, c: ObjectLease(t, c, inf), trace) == 3 * 2 + 2 * 2


def test_one_volume_lease_serves_all_objects_of_the_volume() -> None:
    trace = trace_of([(0, 0, A), (1, 0, B), (5, 0, A), (6, 0, B)])
    assert messages(lambda t, c: VolumeLease(t, c, 10, 1000), trace) == 2 * 2


def test_the_basic_algorithm_tells_inactive_clients_and_the_delayed_one_does_not() -> None:
    trace = trace_of([(0, 0, A), (1, 1, A)], [(50, A)])
    assert messages(lambda t, c: VolumeLease(t, c, 10, 1000), trace) == 2 * 2 + 2 * 2
    assert messages(lambda t, c: Delayed(t, c, 10, 1000), trace) == 2 * 2


def test_what_waited_is_told_with_the_renewal_and_acknowledged_once() -> None:
    """Two objects were written while the client was inactive: one answer, one acknowledgement."""
    trace = trace_of([(0, 0, A), (1, 0, B), (100, 0, A), (101, 0, B)], [(50, A), (51, B)])
    assert messages(lambda t, c: Delayed(t, c, 10, 1000), trace) == 4 + 3 + 2


def test_whoever_is_forgotten_reconnects() -> None:
    """The list is gone 5 s after the volume lease ended; the object that was not written lives."""
    trace = trace_of([(0, 0, A), (1, 0, B), (100, 0, B), (101, 0, A)], [(50, A)])
    assert messages(lambda t, c: Delayed(t, c, 10, 1000, 5), trace) == 4 + (4 + 2) + 2


def test_best_effort_sends_the_same_and_waits_for_nobody() -> None:
    trace = trace_of([(0, 0, A), (1, 1, A)], [(5, A)])
    made: list[Algorithm] = []

    def make(trace: Trace, tally: Tally) -> Algorithm:
        made.append(Delayed(trace, tally, 10, 1000, best_effort=True))
        return made[-1]

    assert messages(make, trace) == messages(lambda t, c: Delayed(t, c, 10, 1000), trace)
    assert (made[0].ack_wait, made[0].worst_stale) == (0.0, 10.0)


@pytest.mark.parametrize(
    ("make", "ack_wait", "worst_stale"),
    [
        (lambda t, c: Poll(t, c, 0), 0.0, 0.0),
        (lambda t, c: Poll(t, c, 60), 0.0, 60.0),
        (lambda t, c: ObjectLease(t, c, inf), inf, 0.0),
        (lambda t, c: ObjectLease(t, c, 60), 60.0, 0.0),
        (lambda t, c: VolumeLease(t, c, 10, 60), 10.0, 0.0),
        (lambda t, c: Delayed(t, c, 10, 60), 10.0, 0.0),
    ],
)
def test_how_long_a_write_waits_and_a_client_is_deceived(
    make: Make, ack_wait: float, worst_stale: float
) -> None:
    made = make(READS, Tally(1))
    assert (made.ack_wait, made.worst_stale) == (ack_wait, worst_stale)


# --- what the server remembers ---


def seconds(make: Make, trace: Trace) -> float:
    return replay(trace, make).record_seconds[0]


def test_a_lease_is_remembered_until_it_ends_and_a_callback_until_it_is_broken() -> None:
    trace = trace_of([(0, 0, A), (100, 1, B)], [(30, A)])
    assert seconds(lambda t, c: ObjectLease(t, c, 10), trace) == 10
    assert seconds(lambda t, c: ObjectLease(t, c, inf), trace) == 30


def test_a_renewed_lease_is_one_record() -> None:
    trace = trace_of([(0, 0, A), (10, 0, A), (100, 1, B)])
    assert seconds(lambda t, c: ObjectLease(t, c, 10), trace) == 20


def test_volume_leases_are_remembered_too() -> None:
    trace = trace_of([(0, 0, A), (100, 1, B)])
    assert seconds(lambda t, c: VolumeLease(t, c, 10, 40), trace) == 40 + 10


def test_what_waits_is_remembered_until_it_is_told() -> None:
    trace = trace_of([(0, 0, A), (80, 0, B), (80, 0, B)], [(30, A)])
    assert seconds(lambda t, c: Delayed(t, c, 10, 1000), trace) == 30 + 10 + (80 - 30)


def test_whoever_is_forgotten_costs_nothing_from_then_on() -> None:
    trace = trace_of([(0, 0, A), (100, 1, B)], [(12, A)])
    """Its object lease until the write, its volume lease, and the item for 3 s."""
    assert seconds(lambda t, c: Delayed(t, c, 10, 1000, 5), trace) == 12 + 10 + 3
    unwritten = trace_of([(0, 0, A), (100, 1, B)])
    assert seconds(lambda t, c: Delayed(t, c, 10, 1000, 5), unwritten) == 15 + 10


def test_what_a_client_lists_when_it_reconnects_is_remembered_again() -> None:
    trace = trace_of([(0, 0, A), (100, 0, B), (110, 1, B)])
    assert seconds(lambda t, c: Delayed(t, c, 10, 1000, 5), trace) == (15 + 10) + (10 + 10 + 10)


def test_state_is_counted_in_records_of_sixteen_bytes() -> None:
    tally = Tally(1)
    tally.record_seconds[0] = 50
    assert tally.state_bytes(0, 100) == RECORD_BYTES / 2


def test_loads_are_counted_by_the_second_of_the_watched_server_only() -> None:
    tally = Tally(2, watched=1)
    for at, volume, count in [(0.1, 1, 2), (0.9, 1, 4), (5.0, 1, 2), (5.0, 0, 50)]:
        tally.say(at, volume, count)
    assert tally.periods() == [(2, 2), (6, 1)]
    assert tally.all_messages == 58


EVERY: dict[str, Make] = {
    "each read": lambda t, c: Poll(t, c, 0),
    "poll": lambda t, c: Poll(t, c, 30),
    "callback": lambda t, c: ObjectLease(t, c, inf),
    "lease": lambda t, c: ObjectLease(t, c, 30),
    "volume": lambda t, c: VolumeLease(t, c, 10, 60),
    "delayed": lambda t, c: Delayed(t, c, 10, 60, 40),
    "best effort": lambda t, c: Delayed(t, c, 10, 60, best_effort=True, one_by_one=True),
}


@pytest.mark.parametrize("make", EVERY.values(), ids=list(EVERY))
def test_writes_before_the_next_read_of_their_file_cost_nothing(make: Make) -> None:
    """So the trace without them, which is much shorter if there are many writes, costs the same."""
    dice = Random(5)
    reads = sorted((dice.random() * 2000, dice.randrange(3), dice.randrange(2)) for _ in range(400))
    writes = sorted((dice.random() * 2000, dice.randrange(2)) for _ in range(600))
    trace = trace_of(reads, writes)
    less = without_needless_writes(trace)
    assert len(less.write_at) < 0.6 * len(trace.write_at)
    assert less.ends_at == trace.ends_at
    assert vars(replay(less, make, watched=0)) == vars(replay(trace, make, watched=0))
