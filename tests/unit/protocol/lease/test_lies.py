"""Machines survive a peer that lies, or is of an earlier life, or says things twice, or never.

They get any valid message, in any state, at any time. The message must not make them raise, break
an invariant, be answered after the end, or keep its victim busy for ever. Each machine is driven as
its driver would, by its own `wake_at`, and what it says is believed or lost as Hypothesis likes.
"""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid
from tenure.protocol.lease.inspecting import Inspect
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import (
    Attest,
    Changes,
    Introduction,
    Leased,
    LeaseResponse,
    OwnerInfo,
    Poke,
    Refusal,
    Standby,
    SyncRefusal,
    SyncResponse,
    ToLookup,
    ToOwner,
)
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.wire.lease import decode_to_lookup, decode_to_owner, encode
from tenure.wire.versions import NEWEST
from tests.unit.protocol.lease.lies import BRIEF, MARKS, Lies, drive, process

# --- to an owner ----------------------------------------------------------------------------------


def leases(lies: Lies) -> tuple[Leased, ...]:
    return tuple(
        Leased(
            start=start,
            end=end,
            number=number,
            since=min(number, 3),
            mark=lies.data.draw(st.sampled_from(MARKS)),
        )
        for start, end in lies.pieces()
        for number in [lies.number(9)]
    )


def lie_to_owner(lies: Lies, owner: OwnerMachine) -> ToOwner:
    sequence, nonce = lies.near(owner.sequence), lies.near(owner.owner_nonce)
    seal = lies.near(owner.manager_nonce), owner.belief.journal or 5, lies.near(owner.leadership)
    match lies.number(8):
        case 8:
            return Attest(
                pool="p", incarnation=lies.number(4), process=process(lies), manager_nonce=seal[0]
            )
        case 0:
            return Poke()
        case 1:
            return Standby(leader=None)
        case 2:
            token = lies.near(owner.who_leads.token)
            return Introduction(
                journal=lies.near(5),
                leadership=seal[2],
                manager_nonce=77,
                token=token,
                owner_nonce=nonce,
                sequence=sequence,
            )
        case 3:
            return Introduction(
                journal=lies.near(5),
                leadership=seal[2],
                manager_nonce=78,
                token=0,
                owner_nonce=nonce,
                sequence=sequence,
            )
        case 4:
            reason = lies.data.draw(st.sampled_from(("past", "name_held", "no_pool", "pool_kind")))
            return Refusal(
                owner_nonce=nonce,
                sequence=sequence,
                manager_nonce=seal[0],
                journal=seal[1],
                leadership=seal[2],
                reason=reason,  # type: ignore[arg-type]
                detail="",
                retry_after_ns=lies.duration(),
            )
        case _:
            incarnation = lies.near(owner.belief.incarnation or 3)
            return LeaseResponse(
                incarnation=incarnation,
                owner_nonce=nonce,
                sequence=sequence,
                manager_nonce=seal[0],
                journal=seal[1],
                leadership=seal[2],
                term_ns=lies.duration(),
                renew_ns=lies.duration(),
                leases=leases(lies),
            )


def owner_event(lies: Lies, owner: OwnerMachine) -> owner_events.OwnerEvent:
    match lies.number(12):
        case 5:
            sight = Sight(seen_from=owner.config.process, is_there=lies.coin())
            question = Attest(
                pool="p",
                incarnation=1,
                process=process(lies),
                manager_nonce=lies.near(owner.manager_nonce),
            )
            return owner_events.Looked("a", question, sight)
        case 0:
            return ManagerLost(lies.data.draw(st.sampled_from("ab")))
        case 1:
            return owner_events.Revoked(lies.number(4))
        case 2:
            return owner_events.Lapsed()
        case 3:
            return owner_events.Alive()
        case 4 if lies.number(3) == 0:
            return owner_events.CloseRequested()
        case _:
            message = decode_to_owner(encode(lie_to_owner(lies, owner), NEWEST), NEWEST)
            assert not isinstance(message, Inspect)
            return ManagerSaid(lies.data.draw(st.sampled_from("aaab")), message)


@BRIEF
@given(st.data())
def test_an_owner_may_be_told_anything(data: st.DataObject) -> None:
    lies = Lies(data)
    watchdog_ns = seconds(1) if lies.number(3) == 0 else None
    config = owner_events.OwnerConfig(
        managers=("a", "b"),
        pool="p",
        name="o",
        address="http://o",
        watchdog_ns=watchdog_ns,
        process=process(lies),
    )
    owner = OwnerMachine(config, Random(1))
    now, wake_at, is_gone = Instant(0), Instant(0), False
    for _ in range(20):
        until = Instant(now + lies.pause())
        done = drive(owner, now, until, wake_at)
        now = until
        actions, wake_at = owner.handle(now, owner_event(lies, owner))
        done += actions
        owner.invariants()
        assert wake_at >= now
        assert not (is_gone and done), "who is gone does nothing more"
        is_gone = owner.phase == "closed"
        assert sum(isinstance(action, owner_events.Closed) for action in done) <= is_gone


# --- to a lookup ----------------------------------------------------------------------------------


def lie_to_lookup(lies: Lies, lookup: LookupMachine) -> ToLookup:
    sequence, nonce, lsn = (
        lies.near(lookup.sequence),
        lies.near(lookup.nonce),
        lies.near(lookup.lsn),
    )
    journal, leadership = lies.near(lookup.journal or 5), lies.near(lookup.leadership)
    owners = tuple(
        OwnerInfo(incarnation=i, name=f"o{i}", address=f"http://{i}")
        for i in range(1, lies.number(3) + 1)
    )
    match lies.number(5):
        case 0:
            return Standby(leader="http://b")
        case 1:
            return SyncRefusal(sequence=sequence, nonce=nonce, detail="")
        case 2:
            to = lsn + lies.number(3)
            return Changes(
                pool="p",
                journal=journal,
                leadership=leadership,
                after=lsn,
                lsn=to,
                entries=lies.entries(),
                owners=owners,
            )
        case _:
            return SyncResponse(
                sequence=sequence,
                nonce=nonce,
                journal=journal,
                leadership=leadership,
                lsn=lsn,
                kind="hashed",
                snapshot=lies.coin(),
                entries=lies.entries(),
                owners=owners,
                sync_ns=lies.duration(),
                contact_ns=lies.duration(),
            )


@BRIEF
@given(st.data())
def test_a_lookup_may_be_told_anything(data: st.DataObject) -> None:
    lies = Lies(data)
    lookup = LookupMachine(lookup_events.LookupConfig(managers=("a", "b"), pool="p"), Random(1))
    now, wake_at = Instant(0), Instant(0)
    seen: dict[int, tuple[int, int]] = {}
    for _ in range(20):
        until = Instant(now + lies.pause())
        drive(lookup, now, until, wake_at)
        now = until
        event: lookup_events.LookupEvent = ManagerLost("a")
        if lies.number(9):
            message = decode_to_lookup(encode(lie_to_lookup(lies, lookup), NEWEST), NEWEST)
            event = ManagerSaid(data.draw(st.sampled_from("aaab")), message)
        actions, wake_at = lookup.handle(now, event)
        lookup.invariants()
        assert wake_at >= now
        for route in actions:
            if isinstance(route, lookup_events.Route):
                starts, places = route.table.starts, route.table.addresses
                assert (starts, len(places)) == (tuple(sorted(set(starts))), len(starts))
        at = (lookup.leadership, lookup.lsn)
        if lookup.journal in seen and len(seen) == 1:  # P15, within one journal
            assert at >= seen[lookup.journal]
        seen[lookup.journal] = at
