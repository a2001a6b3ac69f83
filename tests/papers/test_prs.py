"""PRS: the paper's claims about its abstraction and protocol, one test each, in our words.

If a claim is Centrifuge's too, its test is there; here is what PRS says beside it, and what it says
otherwise. If tenure does otherwise than both, the test says so.
"""

from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
import pytest_asyncio

from tenure import KeyRange, Lease, Owner
from tenure.base.instants import SECOND_NS
from tenure.base.keys import hashed_key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.policy import NOBODY, Candidate, Situation
from tenure.protocol.balance.ring import Ring
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.messages import Entry, LeaseResponse, Sync, SyncResponse
from tenure.protocol.lease.table import Right
from tenure.protocol.lease.timing import PAPER
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster
from tests.papers.stage import LookupActor, Stage, assigned

SOON = 0.5
PAST_TERM = 2.0
KEY = b"k"
KEYS = [f"user-{i}" for i in range(64)]
WHOLE = KeyRange(b"", None)

split_in_two = assigned(
    lambda names: ((b"", names[0] if names else None), (b"m", names[-1] if names else None))
)


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest_asyncio.fixture
async def cluster(clock: TurnedClock) -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["presence"], clock=clock) as cluster:
        yield cluster


def held(owner: Owner, key: str) -> Lease:
    lease = owner.check(key)
    assert lease is not None
    return lease


# --- 2: the two guarantees ----------------------------------------------------------------------


def test_every_loss_is_signalled_to_every_lookup_within_a_bound() -> None:
    """PRS 2, the recovery notification guarantee: all frontends, within a bounded time.

    The bound of a crash is a hold, and two seconds for telling. A lookup that is out of contact
    tells by itself, within its own bound.
    """
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    stage.owner("b")
    lookups = [stage.lookup(f"frontend-{i}") for i in range(5)]
    stage.run()
    a.kill()
    parted, connected = lookups[0], lookups[1:]
    stage.cut_off.append(parted)
    stage.run(PAPER.hold_ns / SECOND_NS + 2)
    assert all(lookup.lost(b"a") for lookup in connected)
    assert not any(lookup.lost(b"z") for lookup in connected)
    assert parted.losses == [WHOLE]


def test_there_is_one_valid_copy_of_a_state() -> None:
    """PRS 2, the single-copy guarantee, while owners come, go, crash and are cut off."""
    stage = Stage()
    keys = [bytes([i]) for i in range(0, 256, 16)]
    owners = [stage.owner(f"owner-{i}") for i in range(4)]
    for i in range(240):
        if i == 20:
            owners[0].kill()
        if i == 40:
            stage.cut_off.append(owners[1])
        if i == 60:
            stage.owner("late")
        if i == 80:
            owners[2].close()
        if i == 160:
            stage.cut_off.clear()
        stage.run(0.5)
        assert all(len(stage.holders(key)) <= 1 for key in keys)
    assert all(len(stage.holders(key)) == 1 for key in keys)


# --- 2.1: the lookup API ------------------------------------------------------------------------


def test_two_names_of_one_hash_are_one_key() -> None:
    """PRS 2.1: keys are hashes, usually; what collides cannot be parted, and needs not be."""
    assert hashed_key(int.from_bytes(hashed_key("ann"), "big")) == hashed_key("ann")
    assert len(hashed_key("ann")) == 8


@pytest.mark.asyncio
async def test_keys_need_not_be_hashed(clock: TurnedClock) -> None:
    """PRS 2.1: the input itself can be the key: a-j here, k-z there. Theirs did not; ours does."""
    pool = CreatePool("names", "ordered", (b"k",))
    async with (
        InProcessCluster([pool], clock=clock) as cluster,
        cluster.owner() as a,
        cluster.owner() as b,
        cluster.lookup() as lookup,
    ):
        await cluster.turn(SOON)
        first, second = lookup.find("ann"), lookup.find("zoe")
        assert {first, second} == {a.address, b.address}
        assert {lookup.find(name) for name in ("bob", "c", "jz")} == {first}
        assert {lookup.find(name) for name in ("k", "mia", "€")} == {second}


@pytest.mark.asyncio
async def test_the_address_is_whatever_the_owner_says(cluster: InProcessCluster) -> None:
    """PRS 2.1: Lookup() returns what the owner said; any protocol can be spoken there."""
    async with cluster.owner("10.0.0.7:4711;v=2"), cluster.lookup() as lookup:
        await cluster.turn(SOON)
        assert lookup.find("ann") == "10.0.0.7:4711;v=2"


@pytest.mark.asyncio
async def test_a_lookup_out_of_contact_signals_everything_and_routes_nothing(
    cluster: InProcessCluster,
) -> None:
    """PRS 2.1: notifications are conservative: without the manager, all ranges may be lost. The
    owner may hold its leases all the while. Clients that were told publish again on return.
    """
    lost: list[KeyRange] = []
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        async with cluster.lookup(on_loss=lost.extend) as lookup:
            await cluster.turn(SOON)
            url = cluster.kill_manager()
            await cluster.turn(1.05)  # contact lasts a second, and a term 1.2
            assert lost == [WHOLE]
            assert lookup.find("ann") is None
            assert not lookup.in_contact
            cluster.start_manager(url)
            await cluster.turn(3)
            assert lookup.find("ann") == owner.address


# --- 2.2: the owner API -------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_handle_is_a_key_a_number_and_the_managers_incarnation(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """PRS 2.2: inside a handle are the key, the lease generation number, and the manager's nonce.

    Ours names the journal instead: a manager that takes over from the same journal breaks nothing.
    """
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = held(owner, "ann")
        assert lease == Lease(hashed_key("ann"), lease.number, lease.journal, "presence")
        url = cluster.kill_manager()
        cluster.start_manager(url)
        await cluster.turn(5)  # many terms: it has been renewed by the new leadership
        assert owner.holds(lease)


@pytest.mark.asyncio
async def test_checking_is_purely_local(cluster: InProcessCluster) -> None:
    """PRS 2.2 and 4.3: both calls of the owner API ask nobody: there is no manager to ask."""
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        cluster.kill_manager()
        lease = held(owner, "ann")
        await cluster.turn(0.5)  # its term runs on
        assert held(owner, "ann") == lease
        assert owner.holds(lease)
        await cluster.turn(PAST_TERM)  # with nothing left to return, leaving waits for nobody


@pytest.mark.asyncio
async def test_stored_state_is_invalid_once_its_handle_is(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """PRS 2.2, figure 4: nothing is rolled back; the next operation finds the handle broken."""
    state: dict[str, tuple[str, Lease]] = {}

    def get(owner: Owner, key: str) -> str | None:
        value, lease = state[key]
        return value if owner.holds(lease) else None

    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        state["ann"] = ("here", held(owner, "ann"))
        await cluster.turn(5)
        assert get(owner, "ann") == "here"
        clock.jump(PAST_TERM)
        await cluster.turn(SOON)
        assert owner.check("ann")
        assert get(owner, "ann") is None


@pytest.mark.asyncio
async def test_only_operations_on_one_key_are_serialized(cluster: InProcessCluster) -> None:
    """PRS 1: consistency is per key: two keys of one operation may have two owners."""
    async with cluster.owner() as a, cluster.owner():
        await cluster.turn(SOON)
        assert {bool(a.check(key)) for key in KEYS} == {True, False}


# --- 2.3 and 2.4 --------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_numbers_order_what_is_said_between_servers(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """PRS 2.3: a receiver discards what does not carry the highest number it has seen."""
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        leases = [held(owner, "ann")]
        for _ in range(3):
            clock.jump(PAST_TERM)
            await cluster.turn(SOON)
            leases.append(held(owner, "ann"))
    numbers = [lease.number for lease in leases]
    assert numbers == sorted(set(numbers))
    assert len({lease.journal for lease in leases}) == 1  # within which they compare


@pytest.mark.asyncio
async def test_owners_hear_of_grants_and_lookups_of_losses(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """PRS 2.4: upcalls are for owners that load state; notifications for clients of frontends."""
    at_owner: list[str] = []
    at_frontend: list[KeyRange] = []
    async with cluster.owner(
        on_grant=lambda _: at_owner.append("granted"),
        on_revoke=lambda _: at_owner.append("revoked"),
    ):
        await cluster.turn(SOON)
        async with cluster.lookup(on_loss=at_frontend.extend):
            await cluster.turn(SOON)
            assert (at_owner, at_frontend) == (["granted"], [])
            clock.jump(PAST_TERM)
            await cluster.turn(SOON)
    assert at_owner[:3] == ["granted", "revoked", "granted"]
    assert at_frontend


@pytest.mark.asyncio
async def test_state_can_be_kept_in_several_places_by_several_keys(
    cluster: InProcessCluster,
) -> None:
    """PRS 2.4: k copies are k keys made of one. Nothing more is promised of them than of one."""
    async with cluster.owner(), cluster.owner(), cluster.owner(), cluster.lookup() as lookup:
        await cluster.turn(SOON)
        places = [{lookup.find(f"{key}/{i}") for i in range(3)} for key in KEYS]
        assert max(len(each) for each in places) == 3


# --- 3.2 ----------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_an_owner_of_one_pool_follows_the_losses_of_another(clock: TurnedClock) -> None:
    """PRS 3.2: a queue's server links in the lookups of other services, and looks nothing up."""
    lost: list[KeyRange] = []
    async with (
        InProcessCluster(["queues", "documents"], clock=clock) as cluster,
        cluster.owner() as queue,
        cluster.lookup(pool="documents", on_loss=lost.extend),
        cluster.owner(pool="documents") as document,
    ):
        await cluster.turn(SOON)
        lost.clear()
        await document.close()
        await cluster.turn(SOON)
        assert lost == [WHOLE]
        assert queue.check("ann")


# --- 4: design ----------------------------------------------------------------------------------


def test_tests_may_put_another_assignment_in_place_of_hashing() -> None:
    """PRS 4.1: who gets what is one module; theirs was replaced in tests by a fixed assignment."""
    stage = Stage(make_policy=split_in_two)
    a, b = stage.owner("a"), stage.owner("b")
    stage.run()
    assert (bool(a.number(b"a")), bool(b.number(b"a"))) == (True, False)
    assert (bool(a.number(b"z")), bool(b.number(b"z"))) == (False, True)


def test_who_comes_or_goes_moves_no_more_than_its_share() -> None:
    """PRS 2 and 4.1: with a newcomer, only what it is to have is recalled from the others."""
    names: Sequence[str] = [f"owner-{i}" for i in range(10)]
    candidates = [Candidate(i + 1, name) for i, name in enumerate(names)]
    nothing = RangeMap(Right(NOBODY, 1, 1))
    before = Ring()(Situation(candidates[:9], nothing)).owners
    after = Ring()(Situation(candidates, nothing)).owners
    for key_range, owner in after:
        if owner != 10:
            assert {was for _, was in before.within(key_range)} == {owner}


def test_every_grant_has_a_new_number() -> None:
    """PRS 4.1: every new assignment is made under a new lease generation number."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    numbers = []
    for i in range(5):
        other = stage.owner(f"b{i}")
        stage.run(5)
        numbers.append(other.number(b"z"))
        other.close()
        stage.run(5)
        numbers.append(a.number(b"z"))
    assert numbers == sorted({number for number in numbers if number})


def test_what_is_compared_on_return_is_the_whole_table() -> None:
    """PRS 4.2: a lookup that gets a snapshot compares it with its copy, range by range."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    b = stage.owner("b")
    lookup = stage.lookup()
    stage.run()
    before = lookup.machine
    known, lsn = before.table[b"a"].number, before.lsn
    stage.cut_off.append(lookup)
    b.close()
    stage.run(400)  # for longer than changes are kept
    stage.owner("b-again")
    stage.run(5)
    lookup.losses.clear()  # contact was lost, and with it everything
    stage.cut_off.clear()
    stage.run(5)
    answer = next(m for m in stage.messages(SyncResponse, to=lookup) if m.lsn > lsn)
    assert answer.snapshot
    assert lookup.lost(b"z")
    assert not lookup.lost(b"a")
    assert lookup.machine.table[b"a"].number == known == a.number(b"a")


def test_changes_are_applied_in_their_order() -> None:
    """PRS 4.2: changes are applied in order: of two to one range, the later one counts."""
    stage = Stage()
    stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    known = lookup.machine
    stage.wake()
    stage.letters.clear()
    stage.let_pass(30)
    stage.wake()
    (number, since) = known.table[KEY].number, stage.table.rights[KEY].since
    entries = tuple(
        Entry(start=b"k", end=b"l", owner=owner, number=number + owner, since=since)
        for owner in (1, 2, 3)
    )
    question = stage.messages(Sync, by=lookup)[-1]
    answered = stage.messages(SyncResponse, to=lookup)[-1]
    answer = msgspec.structs.replace(
        answered,
        sequence=question.sequence,
        lsn=known.lsn + 3,
        entries=entries,
        snapshot=False,
        columns=None,
    )
    lookup.on_message(stage.leader, answer)
    assert (known.table[KEY].owner, known.table[KEY].number) == (3, number + 3)


def test_what_an_earlier_manager_said_is_discarded() -> None:
    """PRS 4.2: the manager's nonce shows that it was restarted, and what it said before is stale.

    Ours: leaderships are numbered, within a journal that has an identity (P15, P22).
    """
    stage = Stage(managers=2, make_policy=split_in_two)
    stage.owner("a")
    lookup = stage.lookup()
    stage.run()
    old = stage.leader
    stage.let_pass(30)
    stage.wake()
    late = answer_of(stage, lookup, old.machine.leadership.leadership)
    old.kill()
    stage.run(60)
    assert lookup.machine.leadership > late.leadership
    at = lookup.machine.lsn
    question = stage.messages(Sync, by=lookup)[-1]
    gone = (Entry(start=b"", end=None, owner=0, number=999, since=999),)
    newer = msgspec.structs.replace(
        late, sequence=question.sequence, lsn=at + 9, entries=gone, snapshot=True
    )
    lookup.on_message(old, newer)
    assert lookup.find(KEY) == "http://a"
    assert lookup.machine.lsn == at


def answer_of(stage: Stage, lookup: LookupActor, leadership: int) -> SyncResponse:
    return next(m for m in stage.messages(SyncResponse, to=lookup) if m.leadership == leadership)


def test_an_owners_whole_table_goes_with_every_message() -> None:
    """PRS 4.3: 64 ranges of 32 bytes each way, 2 KB: small enough to send all of it each time."""
    stage = Stage()
    owners = [stage.owner(f"owner-{i}") for i in range(20)]
    stage.run(5)
    for owner in owners:
        answer = stage.messages(LeaseResponse, to=owner)[-1]
        assert len(answer.leases) == len(owner.holdings.leases) <= 64


def test_without_a_durable_journal_a_failover_waits_out_every_lease() -> None:
    """PRS 4.4: after a failover nothing is granted before all earlier leases have run out.

    Ours with a journal in memory does the same: its new leader cannot know what was promised (P22).
    With a durable one nobody waits and nothing is lost: see Centrifuge 2.1.1.
    """
    stage = Stage(first_start=False)
    a = stage.owner("a")
    stage.run(PAPER.longest_hold_ns / SECOND_NS - 1)
    assert a.number(KEY) is None
    stage.run(3)
    assert a.number(KEY)


def test_clients_have_a_list_of_managers_and_find_the_one_that_answers() -> None:
    """PRS 4.4: they ask every manager server when the leader is silent, until one answers."""
    stage = Stage(managers=4)
    a, lookup = stage.owner("a"), stage.lookup()
    stage.run()
    for _ in range(3):
        stage.leader.kill()
        stage.run(45)
        assert a.number(KEY)
        assert lookup.find(KEY) == "http://a"


@pytest.mark.asyncio
async def test_load_is_counted_where_it_arises(cluster: InProcessCluster) -> None:
    """PRS 4.5: owners measure their requests, and report them as load.

    Ours counts the checks of each range, reports them with the requests for leases, and moves
    ranges by what was reported (`tests/unit/protocol/balance`).
    """
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        for key in KEYS:
            owner.check(key)
        assert sum(checks for _, checks in owner.loads()) == len(KEYS)
