"""Centrifuge, sections 2 to 2.2: what the paper claims of managers and lookups, one test each.

In our words, with the paper's section. Where tenure deliberately does otherwise, the test shows
what it does instead and says so. Section 2.3 is in `test_centrifuge_leases`, the figures with a
story are in `test_centrifuge_figures`, the API of section 3 is in `test_centrifuge_api`.
"""

from itertools import pairwise

import msgspec
import pytest

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.policy import Candidate, Situation
from tenure.protocol.balance.ring import VIRTUAL_NODES, Ring
from tenure.protocol.lease.leader.change_log import ChangeLog
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.messages import (
    Changes,
    Entry,
    Held,
    Hello,
    Introduction,
    LeaseRequest,
    LeaseResponse,
    Poke,
    ShortRequest,
    Standby,
    Sync,
    SyncResponse,
)
from tenure.protocol.lease.table import NOBODY, Right, entries_of
from tenure.protocol.lease.timing import PAPER
from tests.papers.stage import LookupActor, OwnerActor, Stage, assigned, ring

KEY = b"k"
LOW, HIGH = KeyRange(b"", b"m"), KeyRange(b"m", None)


def halves(stage: Stage) -> tuple[OwnerActor, OwnerActor]:
    """Two owners of a stage with `split_in_two`, each with its half."""
    a, b = stage.owner("a"), stage.owner("b")
    stage.run()
    assert (a.number(b"a"), b.number(b"z")) != (None, None)
    return a, b


split_in_two = assigned(
    lambda names: ((b"", names[0] if names else None), (b"m", names[-1] if names else None))
)


def pool_of(stage: Stage) -> Pool:
    leader = stage.leader.machine.leader
    assert leader is not None
    return leader.pools["pool"]


# --- 2: the design in short ---------------------------------------------------------------------


def test_an_owner_gets_what_the_manager_assigns_and_not_what_it_names() -> None:
    """Centrifuge 2 and 3.2: the manager directs; an owner cannot ask for a key."""
    stage = Stage(make_policy=split_in_two)
    a, b = halves(stage)
    short = stage.messages(ShortRequest, by=a)[-1]
    request = msgspec.structs.replace(
        stage.messages(LeaseRequest, by=a)[-1], sequence=short.sequence
    )
    wishes = (
        *request.held,
        Held(start=b"m", end=None, number=1),
        Held(start=b"x", end=None, number=b.number(b"z") or 0),
    )
    wishful = msgspec.structs.replace(request, sequence=request.sequence + 1, held=wishes)
    stage.send(a, stage.leader, wishful)
    stage.settle()
    answer = stage.messages(LeaseResponse, to=a)[-1]
    assert answer.sequence == wishful.sequence
    assert [lease.range for lease in answer.leases] == [LOW]


def test_a_key_has_one_owner_and_a_lease_no_mode() -> None:
    """Centrifuge 2: there are only exclusive leases, none that are for reading alone."""
    stage = Stage()
    owners = [stage.owner(name) for name in "abc"]
    stage.run()
    for key in [bytes([i]) for i in range(256)]:
        assert len(stage.holders(key)) == 1
    assert sum(len(owner.holdings.leases) for owner in owners) == len(stage.table.rights)


def test_every_owner_stands_at_64_points_of_the_ring() -> None:
    """Centrifuge 2: ranges of varying length, by consistent hashing with 64 virtual nodes."""
    assert VIRTUAL_NODES == 64
    candidates = [Candidate(i, f"owner-{i}") for i in range(1, 101)]
    plan = Ring()(Situation(candidates, RangeMap(Right(NOBODY, 1, 1)))).owners
    assert 6_200 < len(plan) <= 100 * 64 + 1  # neighbours of one owner are one range
    lengths = {
        int.from_bytes(b, "big") - int.from_bytes(a, "big") for a, b in pairwise(plan.starts()[1:])
    }
    assert len(lengths) > 6_000


def test_a_lookup_learns_the_whole_map() -> None:
    """Centrifuge 2: lookups know every range, so that they can route to any owner."""
    stage = Stage()
    for name in "abc":
        stage.owner(name)
    lookup = stage.lookup()
    stage.run()
    table = stage.table
    assert lookup.owners() == table.owners()
    for key_range, right in table.rights:
        address = f"http://{table.members[right.owner].name}"
        assert lookup.find(key_range.start) == address


# --- 2.1.1: leader election and high availability -----------------------------------------------


def test_a_change_is_durable_before_anyone_hears_of_it() -> None:
    """Centrifuge 2.1.1: the leader commits what changes its state before it answers."""
    stage = Stage()
    stage.run(0)
    stage.journal_answers = False
    a, lookup = stage.owner("a"), stage.lookup()
    stage.run(1)
    assert stage.messages(Introduction, to=a)  # which says only who leads
    assert not stage.messages(LeaseResponse)
    stage.answer()
    stage.run()
    assert stage.messages(LeaseResponse, to=a)
    assert lookup.find(KEY) == "http://a"


def test_a_standby_takes_over_and_goes_on_where_the_leader_left_off() -> None:
    """Centrifuge 2.1.1: standbys ask to lead; the one that does reads the whole state
    and resumes.
    """
    stage = Stage(managers=3, make_policy=split_in_two)
    stage.run(0)
    a, b = halves(stage)
    lookup = stage.lookup()
    stage.run()
    before = a.number(b"a"), b.number(b"z"), stage.table.entries()
    first = stage.leader
    first.kill()
    stage.run(40)
    assert stage.leader is not first
    assert (a.number(b"a"), b.number(b"z"), stage.table.entries()) == before
    assert lookup.losses == []


def test_any_standby_can_become_the_leader() -> None:
    """Centrifuge 2.1.1: one manager is enough, as long as the store exists."""
    stage = Stage(managers=3)
    a = stage.owner("a")
    stage.run()
    number = a.number(KEY)
    for _ in range(2):
        stage.leader.kill()
        stage.run(40)
    assert a.number(KEY) == number != None  # noqa: E711
    assert sum(manager.is_alive for manager in stage.managers.values()) == 1


def test_only_the_leader_answers_with_leases_and_a_standby_says_who_leads() -> None:
    """Centrifuge 2.1.1: of all managers only the leader answers. Ours: a standby says so, too."""
    stage = Stage(managers=2)
    stage.run(30)
    (standby,) = [m for m in stage.managers.values() if m is not stage.leader]
    a, lookup = stage.owner("a"), stage.lookup()
    stage.run()
    assert a.number(KEY)
    assert lookup.find(KEY)
    assert {type(letter.message) for letter in stage.sent if letter.sender is standby} == {Standby}
    assert stage.messages(Standby, by=standby)[-1].leader == stage.leader.name


def test_clients_ask_every_manager_who_leads_and_then_speak_to_the_leader_alone() -> None:
    """Centrifuge 2.1.1: if the leader is silent, requests go to every manager until one replies.
    Ours asks all of them who leads, with a question that changes nothing. A manager that does not
    lead keeps the question, and answers when it does. Once in ten renewals the question goes to all
    of them again: another may lead another journal (P25).
    """
    stage = Stage(managers=3)
    stage.run(0)
    a = stage.owner("a")
    stage.run(30)
    hellos = {letter.receiver for letter in stage.sent if isinstance(letter.message, Hello)}
    assert hellos == set(stage.managers.values())
    first = stage.leader
    del stage.sent[:]
    stage.run(60)
    assert {letter.receiver for letter in stage.sent if letter.sender is a} == {first}
    first.kill()
    stage.run(40)
    assert stage.leader is not first
    del stage.sent[:]
    stage.run(60)
    asked = [letter for letter in stage.sent if letter.sender is a]
    requests = {each.receiver for each in asked if not isinstance(each.message, Hello)}
    assert requests == {stage.leader}
    assert len(asked) - len(stage.messages(Hello)) > 1
    assert len(stage.messages(Hello)) <= len(stage.managers)


# --- 2.1.2: partitioning, leasing and load management -------------------------------------------


def test_a_manager_has_a_table_for_each_pool() -> None:
    """Centrifuge 2.1.2: a set of namespaces, one for each pool of servers."""
    stage = Stage()
    a, b = stage.owner("a", pool="rooms"), stage.owner("a", pool="queues")
    lookup = stage.lookup(pool="queues")
    stage.run()
    assert a.number(KEY)
    assert b.number(KEY)  # a namesake in another pool is somebody else
    before = lookup.machine.table
    a.close()
    stage.run()
    assert lookup.losses == []
    assert lookup.machine.table == before


def test_every_range_has_a_number_that_only_grows() -> None:
    """Centrifuge 2.1.2: every leased range has a lease generation number. Ours: free ones, too."""
    stage = Stage()
    a = stage.owner("a")
    stage.run()
    numbers = [stage.table.rights[KEY].number]
    for other in "bcd":
        a.close()
        stage.run()
        numbers.append(stage.table.rights[KEY].number)  # nobody's: told at once, P16
        a = stage.owner(other)
        stage.run()
        numbers.append(stage.table.rights[KEY].number)
    assert numbers == sorted(set(numbers))


def test_a_new_owner_is_given_what_is_recalled_from_the_others() -> None:
    """Centrifuge 2.1.2: ranges meant for a newcomer are recalled, and granted as they come free."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    stage.run()
    a.lets_go = False  # `on_revoke` takes its time
    b = stage.owner("b")
    stage.run()
    assert [lease.range for lease in a.revoked] == [HIGH]
    assert a.number(b"z") is None  # it has stopped believing,
    assert b.number(b"z") is None  # and nobody has it until that is returned
    a.let_go()
    stage.run()
    assert b.number(b"z")
    assert a.number(b"a")


def test_leases_last_60_seconds_in_the_papers_preset() -> None:
    """Centrifuge 2.1.2: leases of 60 seconds. Ours: the manager's to say, to each owner (P7)."""
    stage = Stage(timing=PAPER)
    a = stage.owner("a")
    stage.run()
    assert {answer.term_ns for answer in stage.messages(LeaseResponse, to=a)} == {60 * SECOND_NS}


def test_what_an_owner_leaves_goes_to_the_others_at_once() -> None:
    """Centrifuge 2.1.2: the removal of an owner is like its arrival; no lease is waited out."""
    stage = Stage(make_policy=split_in_two)
    a, b = halves(stage)
    a.close()
    stage.run(2)
    assert not a.is_alive
    assert b.number(b"a")


def test_what_an_owner_held_when_it_crashed_waits_for_its_hold() -> None:
    """Centrifuge 2.1.2, 5.1.1: the keys of a crashed owner have none until its lease ends."""
    stage = Stage(make_policy=split_in_two)
    a, b = halves(stage)
    lookup = stage.lookup()
    stage.run(0)
    hold_until = pool_of(stage).sessions[a.machine.belief.incarnation].hold_until
    a.kill()
    stage.run((hold_until - stage.now) / SECOND_NS - 1)
    assert b.number(b"a") is None
    assert lookup.losses == []
    stage.run(3)
    assert b.number(b"a")
    assert lookup.find(b"a") == "http://b"
    assert lookup.losses == [LOW]


def test_the_change_log_is_cut_at_five_minutes() -> None:
    """Centrifuge 2.1.2: changes older than five minutes are forgotten."""
    assert PAPER.keep_changes_ns == 300 * SECOND_NS
    log = ChangeLog(begins_after=1)
    entry = Entry(start=b"", end=None, owner=1, number=1, since=1)
    for lsn in (2, 3, 4):
        log.add(lsn, Instant(lsn * 100 * SECOND_NS), (entry,))
    log.forget_before(Instant(601 * SECOND_NS - PAPER.keep_changes_ns))
    assert log.since(2, at_most=9) is None
    assert log.since(3, at_most=9) == (entry,)


def test_who_should_have_what_is_a_module_that_can_be_replaced() -> None:
    """Centrifuge 2.1.2: the algorithm is pluggable. Ours: a function, given to the manager."""
    everything_to_the_last = assigned(lambda names: ((b"", names[-1] if names else None),))
    stage = Stage(make_policy=everything_to_the_last)
    for name in "abc":
        stage.owner(name)
    stage.run()
    assert [str(owner) for owner in stage.holders(KEY)] == ["c"]
    assert len(stage.table.rights) == 1


# --- 2.2: the lookup library --------------------------------------------------------------------


def push(stage: Stage, lookup: LookupActor, *entries: Entry) -> None:
    """Tell the lookup of changes, as the leader would."""
    known = lookup.machine
    changes = Changes(
        pool="pool",
        journal=known.journal,
        leadership=known.leadership,
        after=known.lsn,
        lsn=known.lsn + 1,
        entries=entries,
        owners=(),
    )
    lookup.on_message(stage.leader, changes)


def test_a_lookup_answers_out_of_its_own_copy() -> None:
    """Centrifuge 2.2: where to send a request is read in a local copy, which may be out of date."""
    stage = Stage()
    a, lookup = stage.owner("a"), stage.lookup()
    stage.run()
    sent = len(stage.sent)
    a.kill()
    assert lookup.find(KEY) == "http://a"  # out of date: the owner is the one to refuse
    assert len(stage.sent) == sent


def test_a_changed_number_is_signalled_as_a_loss() -> None:
    """Centrifuge 2.2: when the number of a range changes, what was there is lost."""
    stage = Stage()
    stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    known = lookup.machine.table[KEY].number
    push(stage, lookup, Entry(start=b"k", end=b"l", owner=1, number=known + 2, since=known + 1))
    assert lookup.losses == [KeyRange(b"k", b"l")]


def test_a_clean_move_is_not_signalled() -> None:
    """Centrifuge 2.2: a flag says that the state moved along. Ours: `since` stays, and says it."""
    stage = Stage()
    stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    known = stage.table.rights[KEY]
    push(
        stage,
        lookup,
        Entry(start=b"k", end=b"l", owner=2, number=known.number + 2, since=known.since),
    )
    assert lookup.losses == []
    assert lookup.machine.table[KEY].number == known.number + 2


def test_a_loss_before_a_clean_move_is_signalled_to_who_was_away() -> None:
    """Centrifuge 2.2, otherwise: the paper's flag speaks of the last change only.

    A lookup that is told once, after a range was lost and then moved cleanly, would see the flag
    and never learn of the loss. `since` says from which number the state is unbroken.
    """
    stage = Stage()
    stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    known = stage.table.rights[KEY].number
    lost_at, moved_at = known + 1, known + 2
    push(stage, lookup, Entry(start=b"k", end=b"l", owner=2, number=moved_at, since=lost_at))
    assert lookup.losses == [KeyRange(b"k", b"l")]


def test_a_lookup_asks_every_30_seconds() -> None:
    """Centrifuge 2.2.1: each lookup contacts the manager once every 30 seconds."""
    stage = Stage()
    stage.owner("a")
    lookup = stage.lookup()
    stage.run(30)
    before = len(stage.messages(Sync, by=lookup))
    stage.run(300)
    assert len(stage.messages(Sync, by=lookup)) - before == 10


def test_changes_are_pushed_between_two_questions() -> None:
    """Centrifuge 2.2.1, otherwise: a change does not wait for the lookup's next question."""
    stage = Stage()
    lookup = stage.lookup()
    stage.owner("a")
    stage.run(3)
    lookup_asks = stage.messages(Sync, by=lookup)
    assert lookup.find(KEY) == "http://a"
    assert stage.messages(Sync, by=lookup) == lookup_asks
    assert stage.messages(Changes, to=lookup)


@pytest.mark.parametrize(("away_seconds", "snapshot"), [(20, False), (400, True)])
def test_who_was_away_for_too_long_gets_the_whole_table(
    away_seconds: float, snapshot: bool
) -> None:
    """Centrifuge 2.2.1: changes since the lookup's LSN; a snapshot where the log was cut since."""
    stage = Stage(make_policy=ring)
    stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    others = [stage.owner(name) for name in "bcdef"]
    stage.run()
    stage.cut_off.append(lookup)
    others[0].close()
    stage.run(away_seconds)
    others[1].close()
    stage.run(3)
    stage.cut_off.clear()
    stage.run(35)
    answers = stage.messages(SyncResponse, to=lookup)
    assert any(answer.snapshot for answer in answers[-2:]) is snapshot
    assert lookup.owners() == stage.table.owners()


def test_a_snapshot_is_sent_where_it_is_shorter() -> None:
    """Centrifuge 2.2.1: when many owners join at once, the table is less than its changes."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    stage.cut_off.append(lookup)
    for name in "bcde":  # each takes the upper half from the one before
        stage.owner(name)
        stage.run()
    stage.cut_off.clear()
    stage.run(35)
    answer = next(m for m in reversed(stage.messages(SyncResponse, to=lookup)) if m.columns)
    assert answer.snapshot
    assert answer.columns is not None
    assert entries_of(answer.columns) == stage.table.entries()
    assert lookup.lost(b"z")
    assert not lookup.lost(b"a")
    assert a.number(b"a")


def test_nobody_is_poked_or_told_while_nothing_changes() -> None:
    """Centrifuge 2.2: 'quiesced' is quiet: lookups' copies are true, and nothing is pushed."""
    stage = Stage()
    stage.owner("a")
    stage.owner("b")
    lookup = stage.lookup()
    stage.run()
    del stage.sent[:]
    stage.run(120)
    assert not stage.messages(Poke)
    assert not stage.messages(Changes)
    assert NOBODY not in stage.table.owners().values()
    assert lookup.losses == []
    assert lookup.owners() == stage.table.owners()
