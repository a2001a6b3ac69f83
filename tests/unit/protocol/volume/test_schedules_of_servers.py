"""Schedules of a server under owners: what it serves, and what it leaves behind."""

import msgspec
import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.volume.messages import Listed, Reconnected
from tenure.protocol.volume.server.events import (
    DrainAsked,
    Drained,
    FailWrite,
    ObjectLoaded,
    RangeGranted,
    TermMoved,
    WriteGivenUp,
)
from tenure.protocol.volume.server.versions import KnownWrites
from tests.unit.protocol.volume.stage import ALONE, OWNED, K, L, Stage, held, opened

DIES_WITH_ITS_OWNER = msgspec.structs.replace(OWNED, durable=False)


def owned(term_s: float = 12) -> Stage:
    """An owner's server, with the whole space and one client that holds K."""
    stage = Stage(config=OWNED)
    stage.grant(term_s=term_s)
    assert stage.read("a") == b"old"
    return stage


def drained(stage: Stage) -> list[Drained]:
    return [each for each in stage.told if isinstance(each, Drained)]


# --- 8: the end of the term ---


def test_a_volume_lease_ends_within_the_owners_term() -> None:
    """Whatever t_v is (V11)."""
    stage = owned(term_s=2)
    stage.pass_(1.84)  # 2 s by the server's clock, which may be faster by a twelfth
    assert stage.hit("a") == b"old"
    stage.pass_(0.01)
    assert stage.hit("a") is None


def test_a_stopped_owner_looks_at_its_clock_before_it_answers() -> None:
    """The end of its term comes before any event (V11)."""
    stage = owned()
    stage.pass_(13)
    stage.use("a")
    stage.carry("Renew")
    assert not stage.letters("Renewed")
    stage.carry("RequestRefused")
    assert stage.hit("a") is None
    assert stage.server.view().readers == ()


def test_writes_and_drains_end_with_the_term() -> None:
    """Nobody can hit any more; the range may belong to another owner."""
    stage = owned()
    stage.write()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.pass_(12)
    stage.wake()
    assert FailWrite(1, "moved") in stage.told
    assert len(drained(stage)) == 1
    assert not stage.bodies


# --- 9: returned undrained ---


@pytest.mark.parametrize("served", [True, False])
def test_returned_undrained(served: bool) -> None:
    """A range goes when its holders have acknowledged, or can no longer hit (V12)."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=served))
    assert not drained(stage)
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    assert len(drained(stage)) == 1
    assert stage.hit("a") is None


def test_the_recall_that_is_never_heard() -> None:
    """The holder is silent: the range goes when it can no longer hit, whatever the
    deadline (V12).
    """
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=False))
    stage.take("Invalidate")
    for _ in range(13):
        stage.pass_(0.25)
        stage.wake()
        assert not (drained(stage) and stage.hit("a"))
    assert drained(stage)


def test_no_lease_is_given_while_draining() -> None:
    """Objects are still read, but not kept (V12)."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.take("Invalidate")  # so that it goes on
    assert stage.read("b") == b"old"
    assert stage.hit("b") is None


def test_what_is_recalled_is_not_served_meanwhile() -> None:
    """The belief ends at once; only the leases are still out (V12)."""
    stage = owned()
    stage.write(L)
    stage.bodies.clear()
    stage.tell_server(DrainAsked(WHOLE, served=False))
    stage.want("b")
    stage.carry("Reconnect", of="b")
    stage.carry("Reconnected", to="b")
    stage.carry("Fetch", of="b")
    assert stage.letters("Elsewhere", to="b")


def test_a_drain_waits_for_the_holders_that_a_write_waits_for() -> None:
    """They hold no lease by the record any more, and may still hit."""
    for served in (True, False):
        stage = owned()
        stage.write()
        invalidate = stage.take("Invalidate")
        stage.tell_server(DrainAsked(WHOLE, served=served))
        assert not drained(stage)
        assert stage.hit("a") == b"old"
        stage.deliver(invalidate)
        stage.carry("Acknowledge")
        if served:
            stage.end_body()  # it was its turn
        assert len(drained(stage)) == 1


def test_a_write_while_draining_waits_for_the_holders_of_the_drain() -> None:
    """Their leases are off the record, and they may still hit."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    invalidate = stage.take("Invalidate")
    stage.write()
    assert not stage.bodies
    stage.deliver(invalidate)
    stage.carry("Acknowledge")
    assert stage.bodies


def test_a_drain_that_is_taken_back() -> None:
    """The range stays; the next write still waits for the clients that were told."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    invalidate = stage.take("Invalidate")
    stage.tell_server(RangeGranted(range=WHOLE, number=7, history=99))
    assert stage.read("b") == b"old"
    assert stage.hit("b") == b"old", "leases are given again"
    stage.write()
    stage.carry("Invalidate", to="b")
    stage.carry("Acknowledge", of="b")
    assert not stage.bodies
    stage.deliver(invalidate)
    stage.carry("Acknowledge")
    assert stage.bodies
    assert not drained(stage)


def test_a_second_order_waits_for_the_holders_of_the_first() -> None:
    """A hand-off that becomes a recall."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    invalidate = stage.take("Invalidate")
    stage.tell_server(DrainAsked(WHOLE, served=False))
    assert not drained(stage)
    stage.deliver(invalidate)
    stage.carry("Acknowledge")
    assert len(drained(stage)) == 2


def test_a_write_that_is_given_up_leaves_its_holders_to_the_next() -> None:
    """They were told, and their leases are off the record; they may still hit."""
    stage = held()
    stage.write(ticket=1)
    invalidate = stage.take("Invalidate")
    stage.tell_server(WriteGivenUp(1))
    stage.write(ticket=2)
    assert not stage.bodies
    assert stage.hit("a") == b"old"
    stage.deliver(invalidate)
    stage.carry("Acknowledge")
    assert [each.ticket for each in stage.bodies] == [2]


def test_what_is_drained_is_served_without_leases_until_the_belief_ends() -> None:
    """A hand-off's last differences are still to come (V12)."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.settle()
    assert len(drained(stage)) == 1
    assert stage.read("a") == b"old"
    assert stage.hit("a") is None
    stage.write()
    stage.settle()
    assert stage.read("a") == b"new"
    suspect = Listed(key=K, number=7, count=1)
    stage.tell_server(DrainAsked(WHOLE, served=False))
    known = drained(stage)[-1].known
    assert len(drained(stage)) == 2
    stage.want("a")
    stage.settle_to("Elsewhere")
    other = Stage(config=OWNED)
    other.grant(8, known=known)
    answer = other.reconnected((suspect,))
    assert isinstance(answer, Reconnected)
    assert answer.live == (), "the write came after it was withdrawn"


def test_a_body_that_outlives_the_belief_is_known_to_the_next_owner() -> None:
    """It may store its value after the next one was told of the writes (V12, V15)."""
    stage = owned()
    suspect = stage.listed("a")[0]
    stage.write()
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    assert stage.bodies
    stage.tell_server(DrainAsked(WHOLE, served=False))
    (known,) = [each.known for each in drained(stage)]
    other = Stage(config=OWNED)
    other.grant(8, known=known)
    answer = other.reconnected((suspect,))
    assert isinstance(answer, Reconnected)
    assert answer.live == ()


def test_what_was_withdrawn_is_leased_again_if_it_stays() -> None:
    """A hand-off failed, or was taken back."""
    stage = owned()
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.settle()
    stage.tell_server(RangeGranted(range=WHOLE, number=7, history=99))
    assert stage.read("a") == b"old"
    assert stage.hit("a") == b"old"


def test_a_range_that_comes_back_under_its_number_has_forgotten_its_writes() -> None:
    """Entries that were current before those writes are not current now (V15)."""
    stage = owned()
    suspect = stage.as_of("a")
    stage.write()
    stage.settle()
    stage.tell_server(DrainAsked(WHOLE, served=False))
    stage.settle()
    stage.grant(7)
    assert not stage.server.context.versions.is_current(K, suspect.version)


def test_a_write_of_ranges_under_different_numbers() -> None:
    """Each key's write is known under the number of its own range; under the lowest, an entry of
    the other would seem to be later (V15). The simulator found it.
    """
    stage = Stage(config=OWNED)
    stage.grant(7)
    number_of_l = RangeGranted(range=KeyRange(L, None), number=9, history=99)
    stage.tell_server(number_of_l)
    assert stage.read("a", L) == b"old"
    suspect = stage.as_of("a", L)
    stage.write(K, L)
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    assert stage.bodies[0].fences == ((K, 7), (L, 9))
    stage.end_body()
    assert not stage.server.context.versions.is_current(L, suspect.version)


def test_a_write_that_fails_because_one_of_its_keys_moves_is_waited_for_by_the_next() -> None:
    """It has taken the object leases of its other keys off the record (V5). The simulator found it:
    seed 20021, where a journal was replaced.
    """
    stage = Stage(config=OWNED)
    stage.grant(7)
    stage.tell_server(RangeGranted(range=KeyRange(L, None), number=9, history=99))
    assert stage.read("a", K) == b"old"
    stage.write(K, L)
    assert not stage.bodies
    stage.tell_server(DrainAsked(KeyRange(L, None), served=False))
    assert [each for each in stage.told if isinstance(each, FailWrite)] == [FailWrite(1, "moved")]
    stage.write(K, ticket=2)
    assert stage.hit("a", K) == b"old"
    assert not stage.bodies, "a reader that was not heard of may hit the old value"
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    assert stage.hit("a", K) is None
    assert [body.keys for body in stage.bodies] == [(K,)]
    stage.tell_server(WriteGivenUp(1))
    assert [each for each in stage.told if isinstance(each, FailWrite)] == [FailWrite(1, "moved")]


def test_a_load_that_outlives_its_range_tells_nobody_what_it_read() -> None:
    """The range was written elsewhere, and came back (V10). The simulator found it: seed 20089."""
    stage = Stage(config=OWNED)
    stage.grant(7)
    stage.want("a")
    stage.settle_to("Fetched", loads=True)
    stage.tell_server(DrainAsked(WHOLE, served=False))
    stage.store[K] = b"elsewhere"
    stage.grant(9)
    stage.load(b"old")
    assert not stage.letters("Fetched")
    assert stage.letters("Elsewhere")
    stage.tell_server(DrainAsked(WHOLE, served=False))
    assert not stage.server.context.readers.leases


def test_no_volume_lease_is_longer_than_the_owners_manager_knows() -> None:
    """One of an earlier version would tell the next owner of no quiet (V13)."""
    stage = owned()
    stage.tell_server(TermMoved(Instant(stage.now("s") + seconds(12)), longest_ns=0))
    stage.pass_(2.9)
    stage.use("a")
    stage.settle()
    stage.pass_(0.2)
    assert stage.hit("a") is None


# --- 10: dead, and then ---


def test_dead_and_then_nothing_is_written_while_its_readers_may_hit() -> None:
    """A grant carries the quiet (V13); where the state is durable, reads begin at once."""
    stage = Stage(config=OWNED)
    stage.grant(quiet_s=3.25)
    assert stage.read("a") == b"old"
    assert stage.hit("a") == b"old"
    stage.write()
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    assert not stage.bodies
    stage.pass_(3.26)
    stage.wake()
    stage.settle()
    assert stage.store[K] == b"new"


def test_dead_with_its_state_and_then_reads_wait_as_well() -> None:
    """To readers that still hit the old value, reading the state as lost is a write (V13)."""
    stage = Stage(config=DIES_WITH_ITS_OWNER, patient=True)
    stage.grant(quiet_s=3.25)
    stage.want("a")
    stage.settle()
    assert not stage.answers["a"]
    assert not stage.loads


def test_state_that_came_along_did_not_die_and_is_read_at_once() -> None:
    """Knowledge of its writes comes only with the state itself (V13, V15)."""
    stage = Stage(config=DIES_WITH_ITS_OWNER, patient=True)
    stage.grant(quiet_s=3.25, known=KnownWrites(floors=(), writes=()))
    assert stage.read("a") == b"old"


def test_granted_twice_the_quiet_is_the_later_ones() -> None:
    """Each grant has a quiet of its own (V13)."""
    stage = Stage(config=OWNED)
    stage.grant(7)
    stage.grant(8, quiet_s=3.25)
    stage.write()
    assert not stage.bodies


# --- 12: as of another owner ---


def test_as_of_another_owner() -> None:
    """The count alone says nothing: it was counted under another number (V15)."""
    stage = owned()
    for ticket in range(1, 4):
        stage.write(L, ticket=ticket)
        stage.settle()
    assert stage.server.view().count == 3
    suspect = stage.as_of("a")
    next_one = Stage(config=OWNED)
    next_one.grant(8)
    next_one.write(K)
    next_one.settle()
    assert not next_one.server.context.versions.is_current(K, (suspect.number, suspect.count + 100))


def test_the_number_of_a_grant_is_its_floor() -> None:
    """Without knowledge of the writes nothing older is current, however unbroken the
    state (V15).
    """
    stage = owned()
    suspect = stage.as_of("a")
    stage.grant(8)
    assert not stage.server.context.versions.is_current(K, suspect.version)


def test_what_came_along_makes_entries_current() -> None:
    """One exchange, and a cache is warm (V12, V15)."""
    stage = owned()
    stage.read("a", L)
    stage.write(L)
    stage.settle()
    stage.read("a", L)
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.settle()
    (known,) = [each.known for each in drained(stage)]
    assert known is not None
    assert stage.hit("a") is None
    other = Stage(config=OWNED)
    other.grant(8, known=known)
    suspects = tuple(stage.listed("a"))
    assert [each.key for each in suspects] == [K, L]
    old = Listed(key=L, number=7, count=0)
    answer = other.reconnected((*suspects, old))
    assert isinstance(answer, Reconnected)
    assert [each.key for each in answer.live] == [K, L]


def test_a_write_that_is_forgotten_raises_the_floor() -> None:
    """An object that may have been written is not current (V15)."""
    stage = opened(config=msgspec.structs.replace(ALONE, known_writes=1))
    stage.read("a", K)
    before = stage.as_of("a")
    for key in (K, L):
        stage.write(key)
        stage.settle()
    assert not stage.server.context.versions.is_current(K, before.version)
    assert not stage.server.context.versions.is_current(b"z", before.version)


# --- 13: forgotten while active ---


def test_forgotten_while_active() -> None:
    """A client that may hit stays on record, however little room there is (V17)."""
    stage = held("a", config=msgspec.structs.replace(ALONE, most_leases=1))
    assert stage.read("b", L) == b"old"
    assert stage.hit("b", L) is None, "there is no room for its lease"
    stage.write()
    assert not stage.bodies
    stage.settle()
    assert stage.hit("a") is None


def test_who_is_inactive_for_longest_makes_room() -> None:
    """It reconnects, and nothing of its is live without being asked about (V17)."""
    stage = held("a", config=msgspec.structs.replace(ALONE, most_leases=1))
    stage.pass_(4)
    assert stage.read("b", L) == b"old"
    assert stage.hit("b", L) == b"old"
    assert len(stage.server.context.readers) == 1


def test_what_is_still_current_is_known_as_of_the_last_question() -> None:
    """Also where the answer gives no lease."""
    stage = held("a", config=msgspec.structs.replace(ALONE, most_leases=1))
    stage.pass_(4)
    assert stage.read("b", L) == b"old"
    for _ in range(2):
        stage.pass_(2)
        assert stage.read("b", L) == b"old"
        assert stage.read("a") == b"old"
        assert stage.hit("a") is None, "there is no room for its lease"
        assert stage.reads("a")[-1].outcome == "unchanged"
        assert stage.entries["a"].objects[K].until == stage.now("a")


def test_granting_during_a_write() -> None:
    """The server gives no object lease while a write of the object has its turn (V5)."""
    stage = held("a")
    stage.write()
    stage.take("Invalidate")
    stage.want("b")
    while stage.sent:
        stage.deliver(stage.sent.pop(0))
    stage.load()
    stage.carry("Fetched", to="b")
    assert stage.value("b") == b"old"
    assert stage.hit("b") is None


# --- relatives ---


def test_a_term_that_has_ended_takes_no_grant() -> None:
    """It was decided before the owner looked at its clock."""
    stage = Stage(config=OWNED)
    stage.tell_server(TermMoved(Instant(stage.now("s") + 1)))
    stage.pass_(1)
    stage.tell_server(RangeGranted(range=WHOLE, number=7, history=99))
    assert not stage.server.view().is_open


def test_a_load_of_an_earlier_life_is_not_taken() -> None:
    """It is counted, and that is all."""
    stage = opened()
    stage.tell_server(ObjectLoaded(17, b"?"))
    assert not stage.sent
