"""Centrifuge 3: what the paper claims of the API, one test each, with the real Owner and Lookup."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tenure import KeyRange, Lease, Lookup, Owner
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio

SOON = 0.5
"""Seconds of the turned clock in which a healthy cluster has settled, with the preset `test`."""
PAST_TERM = 2.0
"""More than a term, and than a hold."""
KEYS = [f"room-{i}" for i in range(64)]
WHOLE = KeyRange(b"", None)


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest_asyncio.fixture
async def cluster(clock: TurnedClock) -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["rooms"], clock=clock) as cluster:
        yield cluster


def held(owner: Owner, key: str) -> Lease:
    lease = owner.check(key)
    assert lease is not None
    return lease


async def sleep_past_the_term(cluster: InProcessCluster, clock: TurnedClock) -> None:
    """Everything is stopped for longer than a term, and goes on."""
    clock.jump(PAST_TERM)
    await cluster.turn(SOON)


# --- 3.1: lookup --------------------------------------------------------------------------------


async def test_when_nobody_comes_or_goes_every_address_is_right(cluster: InProcessCluster) -> None:
    """Centrifuge 3.1: in a quiet system all calls to Lookup() return the correct address."""
    async with cluster.owner() as a, cluster.owner() as b, cluster.lookup() as lookup:
        await cluster.turn(SOON)
        owners = {a.address: a, b.address: b}
        found = [owners[lookup.find(key) or ""] for key in KEYS]
        assert all(owner.check(key) for owner, key in zip(found, KEYS, strict=True))
        assert set(found) == {a, b}


async def test_an_old_address_is_caught_by_the_owner_and_tried_again(
    cluster: InProcessCluster,
) -> None:
    """Centrifuge 3.1: Lookup() gives hints; the owner refuses a stale one, the caller retries."""
    async with cluster.owner() as a, cluster.lookup() as lookup:
        await cluster.turn(SOON)
        hints = {key: lookup.find(key) for key in KEYS}
        assert set(hints.values()) == {a.address}
        async with cluster.owner() as b:
            await cluster.turn(SOON)
            refused = [key for key in KEYS if a.check(key) is None]
            assert refused
            assert {lookup.find(key) for key in refused} == {b.address}  # "after a short backoff"
            assert all(b.check(key) for key in refused)


async def test_a_loss_is_told_so_that_clients_publish_again(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """Centrifuge 3.1: lookups are told, even if the range goes back to the owner that lost it."""
    lost: list[KeyRange] = []
    addresses: list[str | None] = []

    async def republish(ranges: tuple[KeyRange, ...]) -> None:
        lost.extend(ranges)
        addresses.append(lookup.find("room-42"))

    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        async with cluster.lookup(on_loss=republish) as lookup:
            await cluster.turn(SOON)
            number = held(owner, "room-42").number
            await sleep_past_the_term(cluster, clock)
            await cluster.turn(SOON)
            assert held(owner, "room-42").number > number
            assert any(owner.key("room-42") in key_range for key_range in lost)
            assert lookup.find("room-42") == owner.address
    assert addresses


# --- 3.2: owner ---------------------------------------------------------------------------------


async def test_an_owner_must_be_ready_not_to_have_the_lease(cluster: InProcessCluster) -> None:
    """Centrifuge 3.2: no call makes the manager give this owner the lease of a key."""
    async with cluster.owner() as a, cluster.owner() as b:
        await cluster.turn(SOON)
        for key in KEYS:
            assert (a.check(key) is None) is not (b.check(key) is None)
    calls = {name for name in dir(Owner) if not name.startswith("_")}
    assert not {name for name in calls if "acquire" in name or "request" in name or "lock" in name}


async def test_a_check_gives_the_lease_number_to_keep_with_the_state(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """Centrifuge 3.2, figure 10: state is stale where its number is not the present one."""
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        stored = held(owner, "room-42")
        await cluster.turn(SOON)
        assert held(owner, "room-42") == stored  # renewed, and so unbroken
        await sleep_past_the_term(cluster, clock)
        assert held(owner, "room-42").number > stored.number


async def test_an_operation_during_which_the_lease_was_lost_fails(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """Centrifuge 3.2, figure 10: CheckLeaseContinuous() is false if the lease was lost meanwhile.

    Also if it is held again by now: `holds` never comes back.
    """
    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        lease = held(owner, "room-42")
        assert owner.holds(lease)
        clock.jump(PAST_TERM)  # the operation takes that long
        assert not owner.holds(lease)
        await cluster.turn(SOON)
        assert owner.check("room-42")
        assert not owner.holds(lease)


async def test_a_lease_number_fences_effects_elsewhere(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """Centrifuge 3.2: another service refuses what carries a lower number than it has seen."""
    highest: dict[bytes, int] = {}

    def write(lease: Lease) -> bool:
        if lease.number < highest.get(lease.key, 0):
            return False
        highest[lease.key] = lease.number
        return True

    async with cluster.owner() as owner:
        await cluster.turn(SOON)
        before = held(owner, "room-42")
        assert write(before)
        await sleep_past_the_term(cluster, clock)
        assert write(held(owner, "room-42"))
        assert not write(before)  # a message that was on its way


async def test_owners_are_told_what_they_are_given_and_what_is_taken(
    cluster: InProcessCluster,
) -> None:
    """Centrifuge 3.2: upcalls for what is granted, to set up state, and revoked, to drop it.

    The belief ends first: in `on_revoke`, `check` is None already. Then the callback runs, and the
    range is given to nobody else before it returns.
    """
    events: list[tuple[str, bool]] = []
    taken: list[KeyRange] = []

    def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        events.append(("granted", all(each in a.ranges for each in ranges)))

    def on_revoke(ranges: tuple[KeyRange, ...]) -> None:
        taken.extend(ranges)
        keys = [key for key in KEYS if any(a.key(key) in each for each in ranges)]
        events.append(("revoked", any(a.check(key) or b.check(key) for key in keys)))

    b: Owner = cluster.owner()
    async with cluster.owner(on_grant=on_grant, on_revoke=on_revoke) as a:
        await cluster.turn(SOON)
        assert events == [("granted", True)]
        async with b:
            await cluster.turn(SOON)
            assert ("revoked", False) in events
            assert taken
            assert all(b.check(key) for key in KEYS if any(a.key(key) in each for each in taken))


async def test_a_callback_may_come_a_little_late(
    cluster: InProcessCluster, clock: TurnedClock
) -> None:
    """Centrifuge 3.2: the upcall may be delivered some time after the lease has changed.

    So it is not what says whether a key is held: `check` is.
    """
    revoked: list[KeyRange] = []
    async with cluster.owner(on_revoke=revoked.extend) as owner:
        await cluster.turn(SOON)
        clock.jump(PAST_TERM)
        assert owner.check("room-42") is None
        assert revoked == []
        await cluster.turn(SOON)
        assert revoked == [WHOLE]


async def test_managers_are_known_by_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Centrifuge 2.1.1: clients are told of managers: by argument, or by the environment."""
    urls = ("http://10.0.0.1:7400", "http://10.0.0.2:7400")
    given = Lookup(list(urls), pool="rooms")
    monkeypatch.setenv("TENURE_MANAGERS", ",".join(urls))
    from_environment = Lookup(pool="rooms")
    for lookup in (given, from_environment):
        assert lookup._make().machine.config.managers == urls
