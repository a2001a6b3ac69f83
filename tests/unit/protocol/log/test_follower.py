"""A standby keeps up with the journal, so that a takeover reads only what is new."""

from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.records import AnyRecord, PromiseLowered, State
from tenure.protocol.log.follower import Follower
from tenure.protocol.log.journal import Followed, JournalFailed, Load, Loaded, Seat
from tests.unit.protocol.lease.driven_manager import Driven, at

JOURNAL, OTHER = 7, 8


def lowered(first: int, count: int) -> tuple[PromiseLowered, ...]:
    return tuple(PromiseLowered(promise_ns=value) for value in range(first, first + count))


def following() -> Follower[AnyRecord, State, LeaseHistory]:
    """One that has read up to LSN 3."""
    follower = Follower[AnyRecord, State, LeaseHistory](LeaseHistory)
    assert follower.look() == [Load(0)]
    assert follower.on_read(Loaded(0, JOURNAL, State(), 1, lowered(1, 2)))
    return follower


def test_it_asks_for_what_comes_after_what_it_has_read() -> None:
    follower = following()
    assert follower.look() == [Load(0, JOURNAL, 3)]
    assert follower.on_read(Followed(0, JOURNAL, 3, lowered(3, 2)))
    assert follower.look() == [Load(0, JOURNAL, 5)]
    assert follower.history is not None
    assert follower.history.promise_ns == 4


def test_it_asks_once_at_a_time_and_again_after_a_failure() -> None:
    follower = following()
    [load] = follower.look()
    assert follower.look() == []
    assert not follower.on_failed(Load(5, JOURNAL, 3))
    assert follower.on_failed(load)
    assert follower.look() == [load]


def test_it_begins_anew_with_another_journal_however_short() -> None:
    follower = following()
    follower.look()
    assert follower.on_read(Loaded(0, OTHER, State(), 0, lowered(9, 1)))
    assert follower.look() == [Load(0, OTHER, 1)]


def test_an_answer_to_the_standby_is_not_taken_for_one_to_the_leader() -> None:
    """P19: it may be of before the campaign, and a predecessor may have appended since."""
    follower = following()
    follower.look()
    assert follower.read(2) == Load(2, JOURNAL, 3)
    assert not follower.on_read(Followed(0, JOURNAL, 3, lowered(3, 1)))
    assert follower.on_read(Followed(2, JOURNAL, 3, lowered(3, 2)))
    assert follower.lsn == 5


def test_an_answer_that_was_overtaken_changes_nothing() -> None:
    follower = following()
    follower.look()
    assert not follower.on_read(Loaded(0, JOURNAL, State(), 0, lowered(1, 1)))
    assert follower.lsn == 3


def test_a_leader_that_is_told_less_than_it_has_read_knows_that_the_journal_went_back() -> None:
    """P22."""
    follower = following()
    follower.read(2)
    assert follower.has_gone_back(Loaded(2, JOURNAL, State(), 2, ()))
    assert not follower.has_gone_back(Loaded(2, JOURNAL, State(), 3, ()))
    assert not follower.has_gone_back(Loaded(2, OTHER, State(), 2, ()))


def test_what_a_leader_took_away_is_not_followed_any_more() -> None:
    """A leader's history runs ahead of what is durable."""
    follower = following()
    assert follower.take().lsn == 3
    assert follower.look() == [Load(0)]


# --- in the manager -------------------------------------------------------------------------------


def standing_by(leader: Driven) -> Driven:
    """A standby that has looked at the seat, and the journal, of `leader`."""
    return Driven(journal=leader.journal, url="b")


def known(manager: Driven) -> LeaseHistory:
    history = manager.machine.follower.history
    assert history is not None
    return history


def test_a_standby_knows_what_the_leader_has_written_when_it_has_looked_again() -> None:
    leader = Driven()
    standby = standing_by(leader)
    leader.join()
    standby.run(at(1))
    assert known(standby).lsn == leader.journal.lsn
    assert known(standby).tables["p"].members


def test_a_takeover_reads_only_what_is_new() -> None:
    leader = Driven()
    leader.join()
    standby = standing_by(leader)
    lsn = leader.journal.lsn
    leader.journal.vacate()
    standby.run(at(1))
    assert Load(2, leader.journal.journal, lsn) in standby.calls
    assert standby.machine.leader is not None
    standby.run(at(2))
    assert standby.machine.leader.context.history.leadership == 2


def test_a_takeover_does_not_wait_for_what_the_standby_asked() -> None:
    leader = Driven()
    leader.join()
    standby = Driven(journal=leader.journal, url="b", held=(Load,))
    assert [type(each) for each in standby.waiting] == [Load]
    leader.journal.vacate()
    standby.run(at(1))
    [asked, load] = standby.waiting
    assert isinstance(load, Load)
    assert load.leadership == 2
    standby.take(JournalFailed(asked, "late"))
    standby.release()
    assert standby.machine.leader is not None


def test_a_deposed_leader_forgets_what_it_had_decided_and_follows_anew() -> None:
    leader = Driven()
    leader.join()
    leader.journal.seat = Seat(2, 0, "other", 10**12)
    leader.run(at(2))
    assert leader.machine.leader is None
    assert Load(0) in leader.calls
    assert known(leader).lsn == leader.journal.lsn


def test_a_manager_whose_journal_knows_less_than_it_had_read_gives_up() -> None:
    """P22: etcd, say, was put back to a backup while it stood by."""
    leader = Driven()
    leader.join()
    standby = standing_by(leader)
    del leader.journal._written[1:]
    leader.journal.vacate()
    standby.run(at(1))
    assert standby.gave_up
    assert standby.machine.leader is None
