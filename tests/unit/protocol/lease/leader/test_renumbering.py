"""Renumbering: neighbours become one entry, and nothing ends, moves or is taken for lost."""

import pytest

from tenure.base.instants import Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.renumbering import EVERY_NS, Renumbering
from tenure.protocol.lease.messages import Changes, Entry, Held, LeaseResponse
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.events import Hold, Holdings, Revoke
from tenure.protocol.lease.records import Changed
from tenure.protocol.lease.table import Right
from tests.unit.protocol.lease.desk import ByName, Desk

NONCE, LOOKUP, SINCE = 5, 99, 2
PIECES = [(b"", b"c", 3), (b"c", b"g", 9), (b"g", b"m", 4), (b"m", b"t", 9), (b"t", None, 6)]


class Scene:
    """An owner of everything, in entries of several numbers and ages, and what it believes."""

    def __init__(self, *, knows_former: bool = True) -> None:
        self.desk = Desk(ByName((WHOLE, "a")))
        self.desk.context.fragments = 1
        self.table = self.desk.pool.table
        self.belief = Belief()
        self.knows_former = knows_former
        self.now = Instant(0)
        self.revoked: list[Revoke] = []
        self.holdings = Holdings(0, 0, (), Instant(0))
        self.belief.incarnation = self.owner = self.desk.owner(self.now, "a", NONCE)
        self.table.apply(
            Changed(
                pool="p",
                entries=tuple(
                    Entry(start=start, end=end, owner=self.owner, number=number, since=SINCE)
                    for start, end, number in PIECES
                ),
            )
        )
        session = self.desk.pool.sessions[self.owner]
        session.untold.assign(WHOLE, value=True)  # so that the next answer grants all of it
        self.settle()

    def answer(self) -> LeaseResponse:
        """Return the leader's answer to what the owner holds."""
        held, knows = self.belief.held(), self.knows_former
        answer = self.desk.ask(self.now, self.owner, NONCE, held, knows_former=knows)
        assert isinstance(answer, LeaseResponse), answer
        return answer

    def ask(self) -> None:
        """Ask, and believe the answer."""
        actions = self.belief.take(self.answer().leases)
        actions += self.belief.move_expiry(self.now, Instant(self.now + (1 << 60)))
        self.revoked += [each for each in actions if isinstance(each, Revoke)]
        self.holdings = [each.holdings for each in actions if isinstance(each, Hold)][-1]

    def settle(self) -> None:
        """Ask, and show what was believed of it."""
        self.ask()
        self.ask()

    def look(self) -> None:
        """Time passes, and the leader looks whether there are too many entries."""
        for session in self.desk.pool.sessions.values():
            session.hold_until = Instant(self.now + 2 * EVERY_NS)
        self.now = Instant(self.now + EVERY_NS)
        self.desk.advance(self.now)

    def entries(self) -> list[tuple[bytes, int, int]]:
        return [(each.start, each.number, each.since) for each in self.table.entries()]

    @property
    def numbers(self) -> set[int]:
        return {number for _, number, _ in self.entries()}


def test_neighbours_of_one_age_become_one_entry_and_nothing_ends() -> None:
    scene = Scene()
    before = scene.entries()
    assert len(before) == len(PIECES)
    scene.look()
    [(start, number, since)] = scene.entries()
    assert number > max(number for _, number, _ in before)
    assert (start, since) == (b"", SINCE)
    scene.settle()
    assert [each.number for each in scene.belief.leases] == [number]
    assert scene.revoked == []


def test_neighbours_of_different_ages_stay_as_they_are() -> None:
    """What was written under the number of one would count as lost under the `since` of both."""
    scene = Scene()
    younger = Entry(start=b"g", end=b"m", owner=scene.owner, number=SINCE + 90, since=SINCE + 90)
    scene.table.apply(Changed(pool="p", entries=(younger,)))
    scene.desk.pool.sessions[scene.owner].untold.assign(younger.range, value=True)
    scene.settle()
    scene.look()
    assert [since for _, _, since in scene.entries()] == [SINCE, SINCE + 90, SINCE]


def test_an_owner_that_has_not_heard_of_the_number_lists_the_one_before_and_keeps_all() -> None:
    scene = Scene()
    before = scene.table.held_by(scene.owner)
    scene.look()
    for _ in range(3):  # as often as answers are lost
        answer = scene.answer()
        assert [each.former for each in answer.leases] == [each.number for each in before]
        assert {each.mark for each in answer.leases} == {"renewed"}
    scene.ask()
    assert {each.number for each in scene.belief.held()} == scene.numbers
    assert scene.holdings.unbroken == before
    assert [each.former for each in scene.answer().leases] == [0]
    assert (scene.revoked, scene.table.rights[b"a"].owner) == ([], scene.owner)


def test_what_it_lists_under_any_other_number_is_free() -> None:
    """P5 as before: only the number before is accepted besides."""
    scene = Scene()
    scene.look()
    first, *others = scene.belief.held()
    wrong = Held(start=first.start, end=first.end, number=first.number - 1)
    scene.desk.ask(scene.now, scene.owner, NONCE, (wrong, *others), knows_former=True)
    freed = scene.table.rights[first.start]
    assert freed.since == freed.number - 1  # nothing older is left, and it is granted again
    assert scene.table.rights[others[0].start].since == SINCE


def test_the_next_leader_accepts_the_number_before_too() -> None:
    scene = Scene()
    scene.look()
    state = scene.desk.context.history.state()
    again = LeaseHistory(state, scene.desk.context.history.lsn).tables["p"]
    assert again.state() == scene.table.state()
    until = Instant(scene.now + EVERY_NS)
    next_desk = Desk(ByName((WHOLE, "a")), state=state, inherited_until=until)
    answer = next_desk.ask(scene.now, scene.owner, NONCE, scene.belief.held(), knows_former=True)
    assert isinstance(answer, LeaseResponse)
    scene.belief.take(answer.leases)
    assert {each.number for each in scene.belief.held()} == scene.numbers


def test_an_owner_that_does_not_know_of_it_is_left_as_it_is() -> None:
    scene = Scene(knows_former=False)
    before = scene.entries()
    scene.look()
    scene.look()
    assert scene.entries() == before


def test_few_entries_are_left_as_they_are() -> None:
    scene = Scene()
    scene.desk.context.fragments = len(PIECES)
    before = scene.entries()
    scene.look()
    assert scene.entries() == before


def test_a_run_that_is_given_pieces_all_the_time_becomes_shorter_all_the_same() -> None:
    scene = Scene()
    for i in range(40):
        number = scene.table.next_number
        key = bytes([97 + i % 20])
        entry = Entry(start=key, end=key + b"\0", owner=scene.owner, number=number, since=SINCE)
        scene.table.apply(Changed(pool="p", entries=(entry,)))
        scene.desk.pool.sessions[scene.owner].untold.assign(entry.range, value=True)
        scene.settle()
        scene.look()
        scene.settle()
    assert len(scene.entries()) == 1
    assert len(scene.table.former) <= 3  # only those of the last time


def test_lookups_are_told_and_nobody_else_is_written_of() -> None:
    scene = Scene()
    scene.desk.pool.publisher.followers[LOOKUP] = Instant(1 << 61)
    scene.look()
    scene.desk.advance(scene.desk.pool.wake_at)
    [told] = scene.desk.told(LOOKUP, Changes)
    assert {(each.owner, each.number) for each in told.entries} == {
        (scene.owner, next(iter(scene.numbers)))
    }


@pytest.mark.parametrize("owners", [(1, 2, 1, 2), (0, 1, 0, 2)])
def test_what_different_owners_have_is_no_run(owners: tuple[int, ...]) -> None:
    starts = [bytes([i]) if i else b"" for i in range(len(owners))]
    rights = RangeMap.at_starts(starts, [Right(owner, i + 1, 1) for i, owner in enumerate(owners)])
    assert list(Renumbering.runs(rights, 99)) == []
