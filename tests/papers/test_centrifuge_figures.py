"""Centrifuge's figures that tell a story, played by the real machines."""

from collections.abc import Sequence

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.context import LeaderContext, Seal
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.lookup.known import Known
from tenure.protocol.lease.messages import (
    Changes,
    Entry,
    LeaseRequest,
    LeaseResponse,
    OwnerInfo,
    Poke,
    Sync,
    SyncResponse,
)
from tenure.protocol.lease.records import Changed, PoolState, State
from tenure.protocol.lease.table import NOBODY, Right
from tenure.protocol.lease.timing import PAPER
from tests.papers.stage import Assignment, OwnerActor, Stage, assigned
from tests.unit.protocol.lease.desk import Unrivalled

ZERO, ONE, TWO, NINE = b"0", b"1", b"2", b"9"
KEY_OF_B, KEY_OF_C = b"1", b"5"


def figure_4(names: Sequence[str]) -> Assignment:
    """[0-1] to A, [1-9] to B, and its part from 2 on to C once that is there."""
    c = "c" if "c" in names else "b"
    return ((b"", None), (ZERO, "a"), (ONE, "b"), (TWO, c), (NINE, None))


def before_figure_4() -> Stage:
    """The table of figure 4 at LSN 2: A has number 14, B has 15."""
    stage = Stage(make_policy=assigned(figure_4))
    whole = Entry(start=b"", end=None, owner=NOBODY, number=13, since=13)
    pool = PoolState(
        pool="pool",
        kind="hashed",
        split_points=(),
        next_number=14,
        next_incarnation=1,
        entries=(whole,),
        members=(),
        numbered=(),
    )
    stage.journal.state = State(waited_out=True, pools=(pool,))
    stage.owner("a")
    stage.run()
    stage.owner("b")
    stage.run()
    assert right_at(stage, ZERO) == Right(1, 14, 13)
    assert right_at(stage, ONE) == right_at(stage, TWO) == Right(2, 15, 13)
    return stage


def right_at(stage: Stage, key: bytes) -> Right:
    return stage.table.rights[key]


def test_figure_4_a_lookup_catches_up_with_a_split() -> None:
    """Centrifuge 2.2.1, figure 4: [1-9] of B with number 15 is split between B and C.

    The paper gives both halves new numbers, 16 and 17, and so counts B's keys as lost, which never
    moved. Ours: B's half keeps 15 (P11). C's is freed under 16 when B returns it, and granted
    under 17; only that half is lost. A lookup at the LSN before is sent just these changes.
    """
    stage = before_figure_4()
    lookup = stage.lookup()
    stage.run()
    lsn = lookup.machine.lsn
    stage.cut_off.append(lookup)  # it hears of nothing, until it asks
    stage.owner("c")
    stage.run(5)
    stage.cut_off.clear()
    stage.run(35)

    assert right_at(stage, ZERO) == Right(1, 14, 13)
    assert right_at(stage, ONE) == Right(2, 15, 13)
    assert right_at(stage, TWO) == Right(3, 17, 16)
    question = next(sync for sync in stage.messages(Sync, by=lookup) if sync.lsn == lsn)
    answer = next(m for m in stage.messages(SyncResponse, to=lookup) if m.lsn > lsn)
    assert question.lsn < answer.lsn
    assert not answer.snapshot
    assert answer.entries == (
        Entry(start=TWO, end=NINE, owner=NOBODY, number=16, since=16),
        Entry(start=TWO, end=NINE, owner=3, number=17, since=16),
    )
    assert lookup.machine.table[KEY_OF_B] == Known(2, 15, 13)
    assert lookup.machine.table[KEY_OF_C] == Known(3, 17, 16)
    assert set(lookup.losses) == {KeyRange(TWO, NINE)}


def test_figure_4_the_owner_that_stays_never_stops_believing() -> None:
    """Centrifuge 2.2.1, figure 4, otherwise: what is cut off a range leaves the rest alone."""
    stage = before_figure_4()
    b = stage.clients[1]
    assert isinstance(b, OwnerActor)
    (lease,) = b.holdings.leases
    stage.owner("c")
    stage.run(5)
    (kept,) = b.holdings.leases
    assert (lease.start, lease.end) == (ONE, NINE)
    assert (kept.start, kept.end, kept.number) == (ONE, TWO, lease.number)
    assert [each.range for each in b.revoked] == [KeyRange(TWO, NINE)]


def test_figure_4_word_for_word() -> None:
    """Centrifuge 2.2.1, figure 4: the paper's very entries, in our change log and lookup.

    LSN 2 to 3: [1-9: B, 15] becomes [1-2: B, 16] and [2-9: C, 17]. With `since` at these numbers,
    which is what the paper means by a changed number, all of [1-9] counts as lost.
    """
    stage = Stage()
    stage.lookup()
    split = (
        Entry(start=ONE, end=TWO, owner=2, number=16, since=16),
        Entry(start=TWO, end=NINE, owner=3, number=17, since=17),
    )
    before = (
        Entry(start=ZERO, end=ONE, owner=1, number=14, since=14),
        Entry(start=ONE, end=NINE, owner=2, number=15, since=15),
    )
    owners = [(1, "A"), (2, "B"), (3, "C")]
    told = [
        OwnerInfo(incarnation=number, name=name, address=f"http://{name}")
        for number, name in owners
    ]

    pool = PoolState(
        pool="pool",
        kind="hashed",
        split_points=(),
        next_number=2,
        next_incarnation=4,
        entries=(Entry(start=b"", end=None, owner=0, number=1, since=1),),
        members=(),
        numbered=(),
    )
    context = LeaderContext(
        Seal(1, 1, 1), PAPER, LeaseHistory(State(pools=(pool,)), 1), Unrivalled()
    )
    publisher = Publisher(context, context.history.tables["pool"])
    now = Instant(100 * SECOND_NS)
    for entries in (before, split):
        publisher.add(now, context.write(Changed(pool="pool", entries=entries)), entries)
    assert publisher.log.last == 3
    assert publisher.log.since(2, at_most=9) == split

    lookup = stage.lookup()
    stage.wake()
    known = lookup.machine
    whole = SyncResponse(
        sequence=known.sequence,
        nonce=known.nonce,
        journal=1,
        leadership=1,
        lsn=2,
        kind="hashed",
        snapshot=True,
        entries=before,
        owners=tuple(told),
        sync_ns=PAPER.sync_ns,
        contact_ns=PAPER.contact_ns,
    )
    manager = next(iter(stage.managers.values()))
    lookup.on_message(manager, whole)
    assert lookup.find(KEY_OF_C) == "http://B"
    lookup.on_message(
        manager,
        Changes(
            pool="pool", journal=1, leadership=1, after=2, lsn=3, entries=split, owners=tuple(told)
        ),
    )
    assert (lookup.find(KEY_OF_B), lookup.find(KEY_OF_C)) == ("http://B", "http://C")
    assert lookup.losses == [KeyRange(ONE, TWO), KeyRange(TWO, NINE)]
    assert lookup.machine.lsn == 3


# --- figures 6 and 7: the race of a recall's acknowledgement and a new grant ----------------------


def one_owner(names: Sequence[str]) -> Assignment:
    """Everything to the last by name."""
    return ((b"", names[-1] if names else None),)


def test_figure_6_an_acknowledgement_that_a_new_grant_has_overtaken() -> None:
    """Centrifuge 2.3.2, figures 6 and 7: an old 'I do not have it' meets a new 'you have it'.

    A is asked to return its range and says that it has. While that is on its way, B, for whom it
    was meant, is gone, and the manager gives the range back to A. In figure 6 the manager then
    reads the first word of A's and gives the range to somebody else beside it. Figure 7 has both
    sides drop what crossed.

    Here the manager gives only in answer to A's newest request, and takes A's requests in rising
    order. By the time that A can believe again, it has sent a later request than the one on its
    way; so that one says nothing any more, whenever it arrives.
    """
    stage = Stage(make_policy=assigned(one_owner))
    a = stage.owner("a")
    stage.run()
    b = stage.owner("b")
    a.lets_go = False
    stage.run(2)
    assert a.number(KEY_OF_C) is None  # recalled, and not yet returned
    a.let_go()
    returned = stage.take_out(LeaseRequest, lambda letter: letter.sender is a)
    assert returned.message.held == ()
    b.close()
    stage.run(10)  # the manager changes its mind: B is gone, A is to have it
    assert not b.is_alive
    assert a.number(KEY_OF_C)
    grant = a.number(KEY_OF_C)

    stage.carry(returned)  # "I do not have it"
    stage.run(10)
    assert stage.leader.notes.count("late request") == 1
    assert a.number(KEY_OF_C) == grant
    assert [str(holder) for holder in stage.holders(KEY_OF_C)] == ["a"]
    c = stage.owner("c")
    a.lets_go = True
    stage.run(10)  # and when it must go to C, A stops first
    assert stage.holders(KEY_OF_C) == [c]


def test_figure_7_nothing_is_sent_that_could_cross() -> None:
    """Centrifuge 2.3.2, figure 7, otherwise: the manager says nothing unasked but an empty poke.

    So of the two messages that cross in the figure, one does not exist, and no message is ever
    dropped and sent again after a random pause.
    """
    stage = Stage(make_policy=assigned(one_owner))
    for name in "abcd":
        stage.owner(name)
        stage.run(20)
    unanswered: dict[str, int] = {}
    for letter in stage.sent:
        match letter.message:
            case LeaseRequest(sequence=sequence):
                unanswered[str(letter.sender)] = sequence
            case LeaseResponse(sequence=sequence) if str(letter.receiver) in unanswered:
                assert unanswered.pop(str(letter.receiver)) == sequence
            case _:
                pass
    assert stage.messages(Poke)
    assert not {"late request", "old answer"} & set(stage.leader.notes)
